/** An entry of the command bar, as words find it. */
export interface Findable {
  readonly title: string
  /** What it is, such as `pc, started`. */
  readonly hint: string
}

/**
 * The entries that have all words, in their order, but first those whose title has them: `start` is meant to start something, and each
 * node that runs has the word in its hint.
 */
export function foundBy<T extends Findable>(words: string, entries: readonly T[]): T[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  const hasAll = (text: string) => wanted.every((word) => text.toLowerCase().includes(word))
  const found = entries.filter(({ title, hint }) => hasAll(`${title} ${hint}`))
  return [...found.filter(({ title }) => hasAll(title)), ...found.filter(({ title }) => !hasAll(title))]
}
