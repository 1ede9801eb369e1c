/** The most characters of a name: a longer prompt would leave no room for commands. */
const longestName = 32

/** A name as the prompt of a pc shows it: without invisible characters, and cut. Empty when nothing of it is left. */
export const pcName = (text: string): string => {
  const visible = text
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .replace(/\s+/g, ' ')
    .trim()
  return [...visible].slice(0, longestName).join('')
}
