/** Longest part of a word that is compared, UTF-16 code units. */
const maxLength = 40
/** Most words that one is compared with: a file has ten thousand names, and its faults are hints for people. */
const maxKnown = 1000

/** The known word with the fewest edits; undefined when all are too different for a typing error. Of many known words it sees the first 1,000. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const wanted = word.slice(0, maxLength).toLowerCase()
  // Two letters in the wrong order are two edits.
  const limit = wanted.length < 4 ? 1 : Math.max(2, Math.floor(wanted.length / 3))
  let best: string | undefined
  let least = limit + 1
  for (const candidate of known.slice(0, maxKnown)) {
    // Each letter that one has more is an edit.
    if (Math.abs(Math.min(candidate.length, maxLength) - wanted.length) >= least) continue
    const edits = distance(wanted, candidate.slice(0, maxLength).toLowerCase())
    if (edits < least) [best, least] = [candidate, edits]
  }
  return best
}

/** Levenshtein distance, one row at a time. */
function distance(a: string, b: string): number {
  const row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    let diagonal = row[0] ?? 0
    row[0] = i
    for (let j = 1; j <= b.length; j++) {
      const above = row[j] ?? 0
      const change = diagonal + (a.charCodeAt(i - 1) === b.charCodeAt(j - 1) ? 0 : 1)
      row[j] = Math.min(change, above + 1, (row[j - 1] ?? 0) + 1)
      diagonal = above
    }
  }
  return row[b.length] ?? 0
}
