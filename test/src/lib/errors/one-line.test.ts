import type { TObject, TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { describe, expect, test } from 'vitest'
import { tolerant } from '../../../../src/compute/remote/tolerant.ts'
import { NodeName } from '../../../../src/labfile/schema.ts'
import { escapeUnsafe, escapeUnsafeText } from '../../../../src/lib/text/escape.ts'
import { AccessTokenCreate } from '../../../../src/model/access/access-token.ts'
import { kinds } from '../../../../src/model/kinds/index.ts'
import { LabNodeCreate } from '../../../../src/model/lab/node.ts'
import { LabProjectCreate } from '../../../../src/model/lab/project.ts'
import { ProjectCreate } from '../../../../src/model/project.ts'
import { Name } from '../../../../src/model/schema/fields.ts'

/** C0, DEL, C1, separators, and what changes the direction of text (UAX 9). */
const unsafe = [
  ...['\u0000', '\u001b', '\u007f', '\u0085', '\u009b', '\u009d', '\u2028', '\u2029'],
  ...['\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069', '\ufeff'],
]
const names = ['PC1', 'Zürich', 'Москва', '日本', 'القاهرة', '👩‍💻 R1', 'a\u00a0b']

const inputs: readonly TObject[] = [
  ...[ProjectCreate, AccessTokenCreate, LabNodeCreate, LabProjectCreate],
  ...kinds.map(({ create }) => create),
]

describe('one line of text', () => {
  test.for(unsafe)('has no %j: names refuse it, and a terminal gets it escaped', (char) => {
    const name = `a${char}b`
    const escaped = `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
    expect([Check(Name, name), Check(NodeName, name)]).toEqual([false, false])
    for (const schema of inputs) expect(Check(schema.properties.name as TSchema, name)).toBe(false)
    expect([escapeUnsafe(name), escapeUnsafeText(name)]).toEqual([`a${escaped}b`, `a${escaped}b`])
  })

  test('has letters of any language, and emoji', () => {
    for (const name of names) {
      expect([Check(Name, name), Check(NodeName, name)]).toEqual([true, true])
      expect([escapeUnsafe(name), escapeUnsafeText(`${name}\t\n`)]).toEqual([name, `${name}\t\n`])
    }
  })

  test('of an earlier version is read from computes', () => {
    for (const char of unsafe.slice(3)) expect(Check(tolerant(Name), `a${char}b`)).toBe(true)
    expect(Check(tolerant(Name), 'a\u001bb')).toBe(false)
  })
})
