const characters = new Intl.Segmenter()

/** A text of at most so many characters as people count them. Of a longer one the middle is left out: names differ at their ends. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text
  const all = Array.from(characters.segment(text), ({ segment }) => segment)
  if (all.length <= most) return text
  const last = Math.floor((most - 1) / 2)
  return `${all.slice(0, most - 1 - last).join('')}…${all.slice(all.length - last).join('')}`
}
