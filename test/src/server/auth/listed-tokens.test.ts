import { expect, test } from 'vitest'
import type { TokenRecord } from '../../../../src/model/access/access-token.ts'
import { ListedTokens, type TokenList } from '../../../../src/server/auth/listed-tokens.ts'
import { signingKey } from '../../../../src/server/auth/signed-text.ts'
import { newToken, SignedTokens } from '../../../../src/server/auth/token-text.ts'
import { Tokens } from '../../../../src/server/auth/tokens.ts'
import { MemoryTokens } from '../../../support/auth-app.ts'

const key = await signingKey('a secret of tests that is long enough', 'tokens')

/** A process that keeps tokens and one that has a list of them, at a time that only the test changes. */
function two() {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const store = new MemoryTokens()
  const now = () => clock.now
  const tokens = new Tokens({ store, now, key: async () => key })
  const asked: string[] = []
  const far = {
    async read(known: string | undefined, reason: string): Promise<TokenList> {
      asked.push(reason)
      const records = [...store.records.values()]
      const revision = records.map(({ token_id }) => token_id).join()
      if (known === revision) return { revision, at: clock.now }
      const old = records.filter(({ signed }) => signed !== true)
      return {
        revision,
        at: clock.now,
        tokens: { ids: records.map(({ token_id }) => token_id), old, ended: { until: 0, sessions: [] } },
      }
    },
  }
  const beside: Promise<unknown>[] = []
  const read: typeof far.read = (known, reason) => far.read(known, reason)
  const listed = new ListedTokens({
    signed: new SignedTokens(async () => key),
    read,
    waitUntil: (it) => beside.push(it),
    now,
  })
  return { clock, store, tokens, listed, asked, far, beside }
}

/** A token as a version without signed ones made it. */
async function oldToken(store: MemoryTokens): Promise<{ text: string; id: string }> {
  const { id, text, hash } = await newToken()
  const record: TokenRecord = {
    ...{ token_id: id, name: 'old', role: 'read', purpose: 'user', hash, last_characters: text.slice(-4) },
    ...{ created_at: '2025-01-01T00:00:00.000Z', expires_at: null },
  }
  await store.put(record)
  return { text, id }
}

test('a signed token has its own role and scope, and is valid wherever the key is', async () => {
  const { tokens, listed, asked } = two()
  const { token, token_id, expires_at } = await tokens.create({ name: 'Zoë "x"', role: 'operate', expires_in_s: 60 })
  const expiresAt = Date.parse(expires_at ?? '')
  const identity = { name: 'Zoë "x"', role: 'operate', key: `token:${token_id}`, expiresAt }
  expect(token).toMatch(new RegExp(`^pb_${token_id}_[\\w-]+\\.[\\w-]+$`))
  expect(await listed.identify(token)).toEqual(identity)
  expect(await tokens.identify(token)).toEqual(identity)
  const join = await tokens.create({ name: 'lab', purpose: 'join', compute_id: 'one' })
  expect(await tokens.joinTokens.check(join.token)).toEqual({ key: `token:${join.token_id}`, compute_id: 'one' })
  expect([await listed.joinGrant(join.token), await listed.joinGrant(token)]).toEqual([
    { key: `token:${join.token_id}`, compute_id: 'one' },
    undefined,
  ])
  expect(await listed.identify(join.token)).toBeUndefined()
  expect((await tokens.list()).map((it) => Object.keys(it))).not.toContain('signed')
  expect(asked.length).toBe(2)
})

test('where there is only a list, a revoked token is refused after ten seconds at most, and an expired one at once', async () => {
  const { tokens, listed, clock, asked, beside } = two()
  const { token, token_id } = await tokens.create({ name: 'a', role: 'read' })
  const short = await tokens.create({ name: 'b', role: 'read', expires_in_s: 8 })
  expect([await listed.identify(token), await listed.identify(short.token)]).not.toContain(undefined)
  await tokens.revoke(token_id)
  clock.now += 4000
  expect(await listed.identify(token)).toBeDefined()
  expect(asked.length).toBe(1)
  clock.now += 4000
  expect(await listed.identify(short.token)).toBeUndefined()
  // The list is old enough to be read again, beside a request that need not wait for it.
  expect(await listed.identify(token)).toBeDefined()
  await Promise.all(beside)
  expect(await listed.identify(token)).toBeUndefined()
  expect(asked.length).toBe(2)
  clock.now += 10_001
  expect(await listed.identify(token)).toBeUndefined()
  expect(asked.length).toBe(3)
})

test('requests that come together refresh the list once, and again a second later when the answer is not there', async () => {
  const { tokens, listed, clock, asked, far, beside } = two()
  const { token } = await tokens.create({ name: 'a', role: 'read' })
  const signed = await new SignedTokens(async () => key).read(token)
  if (signed === undefined) throw new Error('the token has a signature')
  expect(await listed.identify(token)).toBeDefined()
  const read = far.read
  far.read = async (_, reason) => {
    asked.push(`${reason}, without an answer`)
    return new Promise(() => {})
  }
  clock.now += 5001
  for (let request = 0; request < 10; request++)
    expect([await listed.identify(token), listed.atHand(signed)]).not.toContain(undefined)
  expect(asked).toEqual(['signed', 'signed, without an answer'])
  far.read = read
  clock.now += 1000
  for (let request = 0; request < 10; request++) expect(listed.atHand(signed)).toBeDefined()
  expect(asked).toHaveLength(3)
  await beside.at(-1)
  clock.now += 4001
  expect(listed.atHand(signed)).toBeDefined()
  expect(asked).toHaveLength(3)
  clock.now += 6000
  expect(listed.atHand(signed)).toBeUndefined()
})

test('a token is valid as soon as it is created, also with an older list', async () => {
  const { tokens, listed, clock, asked } = two()
  const first = await tokens.create({ name: 'first', role: 'read' })
  expect(await listed.identify(first.token)).toBeDefined()
  clock.now += 1000
  const second = await tokens.create({ name: 'second', role: 'read' })
  expect(await listed.identify(second.token)).toBeDefined()
  expect(asked.length).toBe(2)
})

test('the list is not read for a text with a wrong signature, and once for unsigned tokens', async () => {
  const { tokens, store, listed, asked, clock, far } = two()
  const { token } = await tokens.create({ name: 'a', role: 'read' })
  const old = await oldToken(store)
  for (const text of ['', 'pb_', `${token}A`, token.slice(0, -1), token.replace(/_[^_.]+\./, '_e30.'), 'x.y'])
    expect(await listed.identify(text)).toBeUndefined()
  expect(asked).toEqual([])
  const read = far.read
  far.read = async () => {
    asked.push('failed')
    throw new Error('the object is not there')
  }
  const unknown = `pb_${'0'.repeat(16)}_${'0'.repeat(64)}`
  await expect(listed.identify(unknown)).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
  for (let count = 0; count < 5; count++) await expect(listed.identify(unknown)).rejects.toMatchObject({ status: 503 })
  expect(asked).toEqual(['failed'])
  far.read = read
  clock.now += 10_000
  // Those that come meanwhile wait for the one that is under way.
  const all = await Promise.all([old.text, unknown, old.text].map((text) => listed.identify(text)))
  expect(all).toMatchObject([{ name: 'old' }, undefined, { name: 'old' }])
  expect(asked).toEqual(['failed', 'old'])
  clock.now += 3_600_000
  expect(await listed.identify(unknown)).toBeUndefined()
  expect(await listed.identify(old.text.slice(0, -1) + (old.text.endsWith('0') ? '1' : '0'))).toBeUndefined()
  expect(asked).toEqual(['failed', 'old'])
  await tokens.revoke(old.id)
  expect(await listed.identify(old.text)).toBeUndefined()
  expect(asked).toEqual(['failed', 'old', 'signed'])
})

test('an unreadable list is 503, and no token is accepted with a list that is too old', async () => {
  const { tokens, listed, far, clock } = two()
  const { token } = await tokens.create({ name: 'a', role: 'read' })
  expect(await listed.identify(token)).toBeDefined()
  far.read = async () => {
    throw new Error('the object is not there')
  }
  clock.now += 9000
  expect(await listed.identify(token)).toBeDefined()
  clock.now += 1001
  await expect(listed.identify(token)).rejects.toMatchObject({ status: 503 })
})
