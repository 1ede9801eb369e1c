/**
 * Whether the lines of a document are in an output, in their order. `...` stands for any text of a line, a number with a decimal
 * point for any such number, and blanks for any blanks. The first line that is not there is the result; undefined: all are.
 */
export function missingLine(expected: string, output: string): string | undefined {
  let rest = output
  for (const line of expected.split('\n').filter((it) => it.trim() !== '')) {
    const found = patternOf(line.trim()).exec(rest)
    if (found === null) return line
    rest = rest.slice(found.index + found[0].length)
  }
  return undefined
}

function patternOf(line: string): RegExp {
  const source = line
    .split('...')
    .map((part) =>
      part
        .replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
        .replace(/\d+\\\.\d+(?![\\.\d])/g, (number, at: number, all: string) =>
          // An address is no number.
          /[\d.]$/.test(all.slice(0, at)) ? number : '\\d+(?:\\.\\d+)?',
        )
        .replace(/\s+/g, '[ \\t]+'),
    )
    .join('[^\\n]*')
  return new RegExp(source)
}
