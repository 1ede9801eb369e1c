import fc from 'fast-check'
import { expect, test } from 'vitest'
import { path, search } from '../../../../src/compute/remote/paths.ts'

test('a value stays one segment of a URL, and is decoded unchanged', () => {
  const value = fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1 }),
    fc.constantFrom('.', '..', '../x', 'a/../b', '/etc', '%2e%2e', 'a?b#c', '\\..\\', 'a b', '//'),
  )
  fc.assert(
    fc.property(value, (text) => {
      const { pathname, search, hash } = new URL(`http://host${path`/a/${text}/b`}`)
      const [, a, encoded = '', b, ...more] = pathname.split('/')
      expect([a, b, more, search, hash]).toEqual(['a', 'b', [], '', ''])
      // A lone dot segment would be folded; with the slash it still leaves its directory, and is refused for that.
      expect(decodeURIComponent(encoded)).toBe(text === '.' || text === '..' ? `${text}/` : text)
    }),
  )
})

test('text that cannot be in a path is refused', () => {
  expect(() => path`/a/${'\ud800'}`).toThrow('surrogates')
})

test('a query has the given values', () => {
  expect(search({ a: undefined })).toBe('')
  expect(search({ a: 'x&y', b: undefined, c: 0 })).toBe('?a=x%26y&c=0')
})
