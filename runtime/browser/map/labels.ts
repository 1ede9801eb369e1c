const characters = new Intl.Segmenter()

/** A text of at most so many characters as people count them; a longer one ends in an ellipsis. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text
  const shown: string[] = []
  for (const { segment } of characters.segment(text)) {
    shown.push(segment)
    if (shown.length > most) return `${shown.slice(0, most - 1).join('')}…`
  }
  return text
}
