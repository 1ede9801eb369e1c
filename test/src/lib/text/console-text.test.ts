import { expect, test } from 'vitest'
import { ConsoleText, consoleText } from '../../../../src/lib/text/console-text.ts'

test('output of a console is shown without what controls a terminal, in 7 and in 8 bits', () => {
  const cases: readonly (readonly [output: string, text: string])[] = [
    ['\u001b[31mred\u001b[0m\r\n', 'red\n'],
    ['\u009b31mred\u009b0m', 'red'],
    ['\u001b]0;title\u0007a\u001b]0;title\u001b\\b', 'ab'],
    ['\u009d0;title\u009ca\u009d52;c;AAAA\u0007b', 'ab'],
    ['\u0090q\u009ca\u001bPq\u001b\\b', 'ab'],
    ['a\u009b\u0085\u0007\bb\u001b', 'ab'],
    ['a\tb\nc', 'a\tb\nc'],
    ['a\u202eb\u2028c', 'a\\u202eb\\u2028c'],
    ['Zürich 日本', 'Zürich 日本'],
  ]
  for (const [output, text] of cases) expect([output, consoleText(output)]).toEqual([output, text])
})

test('wherever output is cut into pieces, no control character gets through', () => {
  const output = Buffer.from('a\u001b[1;31mré\u009b0md\u001b]0;title\u0007\u009d0;title\u009c \u202eend\n')
  const whole = new ConsoleText().push(output)
  expect(whole).toBe('aréd \\u202eend\n')
  for (let cut = 0; cut <= output.length; cut++) {
    const text = new ConsoleText()
    const parts = text.push(output.subarray(0, cut)) + text.push(output.subarray(cut))
    expect(parts).not.toMatch(/[^\P{Cc}\n]/u)
    expect([cut, parts]).toEqual([cut, whole])
  }
})
