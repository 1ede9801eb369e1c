/** The known word with the fewest edits; undefined when all are too different for a typing error. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  // Two letters in the wrong order are two edits.
  const limit = word.length < 4 ? 1 : Math.max(2, Math.floor(Math.min(word.length, 40) / 3))
  let best: string | undefined
  let least = limit + 1
  for (const candidate of known) {
    const edits = distance(word.slice(0, 40).toLowerCase(), candidate.toLowerCase())
    if (edits < least) [best, least] = [candidate, edits]
  }
  return best
}

/** Levenshtein distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
