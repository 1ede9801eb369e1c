import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { labFileText } from '../../../src/labfile/text.ts'

test.each([
  ...[':/symbols/nat.svg', '?', 'a?b', '-', '=', 'yes', 'Off', '012', '0o7', '1_000', '1:20', '0x1F', '2026-11-28'],
  ...['~', 'null', '', ' a', 'a: b', '#a', '@a', '%a', '&a', '*a', '!a', '<<', '.inf'],
])('the text %j is one to other readers of YAML, also of version 1.1', (text) => {
  const file = { lab: 'x', version: 1 as const, nodes: { a: { kind: 'pc', symbol: text }, [text]: { kind: 'pc' } } }
  const written = labFileText(file)
  for (const version of ['1.1', '1.2'] as const) expect(parse(written, { version })).toEqual(file)
  if (/^[:?=-]|\?/.test(text)) expect(written).toContain(`symbol: ${JSON.stringify(text)}`)
})
