/** The names in a list: one a line, or with commas, semicolons or tabs between them, as a table is pasted. */
export const studentNamesIn = (text: string): string[] =>
  text
    .normalize('NFC')
    .split(/[\n\r\t,;]/)
    .map((part) =>
      part
        .trim()
        .replace(/^"(.*)"$/, '$1')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter((name) => name !== '')
