import { expect, test } from 'vitest'
import { maxSignedTextLength, signingKey, signText, verifySigned } from '../../../../src/server/auth/signed-text.ts'

const secret = 'a secret of tests that is long enough'

test('a signed text is accepted with its key and its purpose, and with no other', async () => {
  const key = await signingKey(secret, 'tests')
  const payload = { name: 'Zoë 🦉', role: 'operate', expires: 1_800_000_000, list: [1, null] }
  const text = await signText(key, 'ticket', payload)
  expect(text).toMatch(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}$/)
  expect(await verifySigned([key], 'ticket', text)).toEqual(payload)
  // The same secret and use give the same key: another isolate knows it, too.
  expect(await verifySigned([await signingKey(secret, 'tests')], 'ticket', text)).toEqual(payload)
  expect(await verifySigned([key], 'session', text)).toBeUndefined()
  expect(await verifySigned([], 'ticket', text)).toBeUndefined()
  expect(await verifySigned([await signingKey(secret, 'else')], 'ticket', text)).toBeUndefined()
  expect(await verifySigned([await signingKey(`${secret}!`, 'tests')], 'ticket', text)).toBeUndefined()
})

test('a key that replaced another one and the replaced one can be given together', async () => {
  const [old, current] = [await signingKey(secret, 'tests'), await signingKey(new Uint8Array(32).fill(7), 'tests')]
  expect(await verifySigned([current, old], 'ticket', await signText(old, 'ticket', 1))).toBe(1)
  expect(await verifySigned([current, old], 'ticket', await signText(current, 'ticket', 2))).toBe(2)
})

test('a text with one changed character is refused', async () => {
  const key = await signingKey(secret, 'tests')
  const text = await signText(key, 'ticket', { role: 'read' })
  for (let index = 0; index < text.length; index++)
    for (const other of ['A', 'B', '_', '.', '=', ' '])
      if (text[index] !== other) {
        const changed = text.slice(0, index) + other + text.slice(index + 1)
        expect(await verifySigned([key], 'ticket', changed), changed).toBeUndefined()
      }
})

test('a text that is not in the form of a signed text is refused without an error', async () => {
  const key = await signingKey(secret, 'tests')
  const text = await signText(key, 'ticket', 1)
  for (const bad of ['', '.', 'x', `${text}.`, `${text} `, `.${text}`, text.replace('.', ''), 'é'.repeat(50), '\0'])
    expect(await verifySigned([key], 'ticket', bad), bad).toBeUndefined()
})

test('a signed text has a bounded length', async () => {
  const key = await signingKey(secret, 'tests')
  await expect(signText(key, 'ticket', 'x'.repeat(maxSignedTextLength))).rejects.toThrow(RangeError)
  expect((await signText(key, 'ticket', 'x'.repeat(3000))).length).toBeLessThanOrEqual(maxSignedTextLength)
  expect(await verifySigned([key], 'ticket', `${'A'.repeat(maxSignedTextLength)}.${'A'.repeat(43)}`)).toBeUndefined()
})

test('a key is derived from a secret of at least 16 bytes, and cannot be exported', async () => {
  await expect(signingKey('short', 'tests')).rejects.toThrow('16 bytes')
  const key = await signingKey(secret, 'tests')
  await expect(crypto.subtle.exportKey('raw', key)).rejects.toThrow()
  await expect(signText(key, 'ticket', undefined)).rejects.toThrow(TypeError)
})
