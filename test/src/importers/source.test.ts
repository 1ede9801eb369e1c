import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { importLabFile } from '../../../src/importers/formats.ts'
import { labFileText } from '../../../src/labfile/text.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'

const fixtures = join(import.meta.dirname, '../../fixtures/labs')
const texts = readdirSync(fixtures, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(ya?ml|gns3)$/.test(name))
  .map((name) => readFileSync(join(fixtures, name), 'utf8'))

test('an alias bomb, a deep nesting and a long text are refused', () => {
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x,x]']
  for (const [index, name] of [...'bcdefghij'].entries())
    bomb.push(`${name}: &${name} [${Array(10).fill(`*${'abcdefghi'[index]}`).join(',')}]`)
  expect(() => importLabFile({ text: bomb.join('\n') })).toThrow(expect.objectContaining({ status: 400 }))
  for (const text of ['['.repeat(100_000), `a: ${'{a: '.repeat(5000)}`, '- '.repeat(50_000)])
    expect(() => importLabFile({ text })).toThrow(expect.objectContaining({ status: 400 }))
  expect(() => importLabFile({ text: ' '.repeat((1 << 20) + 1) })).toThrow('1:1: the file has more than 1 MiB')
})

test('names such as __proto__ are ordinary keys', () => {
  const text =
    'name: __proto__\ntopology:\n  nodes:\n    __proto__: { kind: linux }\n    constructor: { kind: linux }\n'
  const { file } = importLabFile({ text })
  expect(Object.keys(file.nodes)).toEqual(['__proto__', 'constructor'])
  expect(file.lab).toBe('proto')
})

test('a lab with any part cut, doubled or exchanged is read, or refused with a position', () => {
  const text = fc.constantFrom(...texts)
  const place = fc.double({ min: 0, max: 1, noNaN: true })
  const insertion = fc.oneof(
    fc.string({ maxLength: 4 }),
    fc.constantFrom('null', '[]', '{}', '- ', ': ', '\n', '&a ', '*a', '-1', '1e99'),
  )
  fc.assert(
    fc.property(text, place, place, insertion, (whole, from, length, inserted) => {
      const start = Math.floor(from * whole.length)
      const changed = whole.slice(0, start) + inserted + whole.slice(start + Math.floor(length * length * 40))
      try {
        const { file } = importLabFile({ text: changed })
        expect(parse(labFileText(file))).toEqual(JSON.parse(JSON.stringify(file)))
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        expect(error.status).toBe(400)
        expect(error.message).toMatch(/^\d+:\d+: /)
      }
    }),
    { numRuns: 150 },
  )
})
