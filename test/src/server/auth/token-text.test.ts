import { expect, test } from 'vitest'
import { signingKey } from '../../../../src/server/auth/signed-text.ts'
import { newSignedToken, SignedTokens, type TokenMeaning } from '../../../../src/server/auth/token-text.ts'

const meaning: TokenMeaning = {
  ...{ token_id: '0123456789abcdef', name: 'anna', role: 'read', purpose: 'user' },
  ...{ created_at: '2026-11-01T00:00:00.000Z', expires_at: null },
}

/** Tokens that count how often their key was asked for: once for each text that is checked. */
async function counting() {
  const key = await signingKey('a secret that is long enough', 'tokens')
  const { text } = await newSignedToken(key, meaning)
  const checks: string[] = []
  const tokens = new SignedTokens(async () => {
    checks.push('checked')
    return key
  })
  return { tokens, text, checks }
}

test('a signed token is checked once', async () => {
  const { tokens, text, checks } = await counting()
  expect(await tokens.read(text)).toEqual(meaning)
  expect(await tokens.read(text)).toEqual(meaning)
  expect(checks).toHaveLength(1)
})

test('a text that is not a token is checked each time, and never cached', async () => {
  const { tokens, text, checks } = await counting()
  const wrong = text.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  expect(await tokens.read(wrong)).toBeUndefined()
  expect(await tokens.read(wrong)).toBeUndefined()
  expect(await tokens.read(text)).toEqual(meaning)
  expect(checks).toHaveLength(3)
})
