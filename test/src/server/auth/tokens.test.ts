import { expect, test } from 'vitest'
import { parseSshKey } from '../../../../src/model/access/ssh-key.ts'
import type { TokenKeys } from '../../../../src/server/auth/token-keys.ts'
import { parseToken } from '../../../../src/server/auth/token-text.ts'
import { maxTokens, Tokens } from '../../../../src/server/auth/tokens.ts'
import { MemoryTokens } from '../../../support/auth-app.ts'

/** Tokens at a time that only the test changes. */
function atTime(options: { cacheMs?: number; store?: MemoryTokens } = {}) {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const store = options.store ?? new MemoryTokens()
  const tokens = new Tokens({ store, now: () => clock.now, cacheMs: options.cacheMs ?? 0 })
  return { clock, store, tokens }
}

test('a token is shown once, and kept only as a digest', async () => {
  const { tokens, store } = atTime()
  const { token, ...shown } = await tokens.create({ name: 'ci', role: 'operate' })
  const parts = parseToken(token)
  expect(parts?.id).toBe(shown.token_id)
  expect(shown).toEqual({
    ...{ token_id: expect.any(String), name: 'ci', role: 'operate', purpose: 'user' },
    ...{ last_characters: token.slice(-4), created_at: '2026-01-01T00:00:00.000Z', expires_at: null },
  })
  expect(await tokens.list()).toEqual([shown])
  expect(JSON.stringify([...store.records.values()])).not.toContain(parts?.secret)
  expect(await tokens.identify(token)).toEqual({ name: 'ci', role: 'operate', key: `token:${shown.token_id}` })
})

test('only the token itself is accepted', async () => {
  const { tokens, store } = atTime()
  const [{ token }, other] = [
    await tokens.create({ name: 'a', role: 'admin' }),
    await tokens.create({ name: 'b', role: 'admin' }),
  ]
  const { secret = '' } = parseToken(other.token) ?? {}
  const last = token.endsWith('0') ? '1' : '0'
  const wrong = [
    ...['', 'pb_', 'x', token.slice(0, -1), token.slice(0, -1) + last, `${token}0`, ` ${token}`, token.toUpperCase()],
    // The secret of another one, and an id that is not known.
    token.replace(/[0-9a-f]{64}$/, secret),
    `pb_${'0'.repeat(16)}_${secret}`,
    [...store.records.values()][0]?.hash ?? '',
  ]
  for (const text of wrong) expect([text, await tokens.identify(text)]).toEqual([text, undefined])
})

test('a token ends at its time, and when it is revoked', async () => {
  const { tokens, clock } = atTime({ cacheMs: 10_000 })
  const { token } = await tokens.create({ name: 'short', role: 'read', expires_in_s: 5 })
  expect(await tokens.identify(token)).toBeDefined()
  clock.now += 5000
  expect(await tokens.identify(token)).toBeUndefined()
  const second = await tokens.create({ name: 'second', role: 'read' })
  expect(await tokens.identify(second.token)).toBeDefined()
  await tokens.revoke(second.token_id)
  expect(await tokens.identify(second.token)).toBeUndefined()
  await expect(tokens.revoke(second.token_id)).rejects.toMatchObject({ status: 404 })
})

test('a join token is valid for a join only', async () => {
  const { tokens } = atTime()
  const user = await tokens.create({ name: 'u', role: 'admin' })
  const any = await tokens.create({ name: 'j', purpose: 'join', role: 'admin' })
  const one = await tokens.create({ name: 'j', purpose: 'join', compute_id: 'lab-1' })
  expect(await tokens.identify(any.token)).toBeUndefined()
  expect(any.role).toBe('read')
  const { joinTokens } = tokens
  expect(await joinTokens.check(any.token)).toEqual({ key: `token:${any.token_id}` })
  expect(await joinTokens.check(one.token)).toEqual({ key: `token:${one.token_id}`, compute_id: 'lab-1' })
  expect(await joinTokens.check(user.token)).toBeUndefined()
  await expect(tokens.create({ name: 'x', role: 'read', compute_id: 'lab-1' })).rejects.toMatchObject({ status: 400 })
  await expect(tokens.create({ name: 'x' })).rejects.toMatchObject({ status: 400 })
})

test('a join token belongs to the compute that used it first, also after a restart, and is shown so', async () => {
  const { tokens, store, clock } = atTime()
  const { token, token_id } = await tokens.create({ name: 'j', purpose: 'join', expires_in_s: 60 })
  const key = `token:${token_id}`
  expect(await tokens.joinTokens.isOwned('lab-1')).toBe(false)
  expect(await tokens.joinTokens.bind(key, 'Lab-1')).toBe('Lab-1')
  const { tokens: next } = atTime({ store })
  expect(await next.joinTokens.check(token)).toEqual({ key, compute_id: 'Lab-1' })
  expect(await next.joinTokens.bind(key, 'lab-2')).toBe('Lab-1')
  expect(await next.list()).toMatchObject([{ token_id, compute_id: 'Lab-1' }])
  expect(await next.joinTokens.isOwned('LAB-1')).toBe(true)
  // One that has ended protects nothing.
  clock.now += 60_000
  expect([await tokens.joinTokens.isOwned('lab-1'), await tokens.joinTokens.grantOf(key)]).toEqual([false, undefined])
})

test('a join token that is revoked during a join stays revoked', async () => {
  const { tokens, store } = atTime()
  const { token_id } = await tokens.create({ name: 'j', purpose: 'join' })
  const { get } = store
  store.get = async (id) => {
    const record = await get.call(store, id)
    store.records.delete(id)
    return record
  }
  expect(await tokens.joinTokens.bind(`token:${token_id}`, 'lab-1')).toBeUndefined()
  expect(store.records.size).toBe(0)
})

test('a remote store is read again only after some time, which is limited', async () => {
  const { tokens, store, clock } = atTime({ cacheMs: 60_000 })
  const { token, token_id } = await tokens.create({ name: 'a', role: 'read' })
  for (let count = 0; count < 5; count++) expect(await tokens.identify(token)).toBeDefined()
  expect(store.reads).toBe(1)
  // Another process revokes it.
  store.records.delete(token_id)
  clock.now += 9999
  expect(await tokens.identify(token)).toBeDefined()
  clock.now += 1
  expect(await tokens.identify(token)).toBeUndefined()
})

test('a read that a revocation overtakes is not cached', async () => {
  const store = new MemoryTokens()
  const { tokens } = atTime({ cacheMs: 10_000, store })
  const { token, token_id } = await tokens.create({ name: 'a', role: 'read' })
  const record = store.records.get(token_id)
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  store.get = async () => {
    delete (store as Partial<MemoryTokens>).get
    await answered
    return record
  }
  const underWay = tokens.identify(token)
  await tokens.revoke(token_id)
  answer()
  await underWay
  expect(await tokens.identify(token)).toBeUndefined()
})

test('the number of tokens is limited; expired ones make room', async () => {
  const { tokens, store, clock } = atTime()
  const short = await tokens.create({ name: 'short', role: 'read', expires_in_s: 10 })
  const record = store.records.get(short.token_id)
  if (record === undefined) throw new Error('it is not there')
  for (let count = 1; count < maxTokens; count++) {
    const token_id = String(count).padStart(16, '0')
    await store.put({ ...record, token_id, expires_at: null })
  }
  const ids = [...store.records.keys()]
  await expect(tokens.create({ name: 'one more', role: 'read' })).rejects.toMatchObject({ status: 409 })
  expect([...store.records.keys()]).toEqual(ids)
  clock.now += 10_000
  const placed = await tokens.create({ name: 'one more', role: 'read' })
  expect(store.records.size).toBe(maxTokens)
  expect([store.records.has(placed.token_id), store.records.has(short.token_id)]).toEqual([true, false])
})

test('a key belongs to one token, and ends with it', async () => {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const tokens = new Tokens({ store: new MemoryTokens(), now: () => clock.now, hasSsh: true })
  const keys = tokens.keys as TokenKeys
  const ann = await tokens.create({ name: 'ann', role: 'read', projects: ['class-*'], expires_in_s: 60 })
  const bob = await tokens.create({ name: 'bob', role: 'operate' })
  const rack = await tokens.create({ name: 'rack', purpose: 'join' })
  const line = (byte: number) => {
    const blob = Uint8Array.of(0, 0, 0, 11, ...new TextEncoder().encode('ssh-ed25519'), 0, 0, 0, 32)
    return `ssh-ed25519 ${Buffer.concat([blob, Buffer.alloc(32, byte)]).toString('base64')}`
  }
  const key = await keys.add(ann.token_id, `${line(1)} ann@example`)
  expect(key).toMatchObject({ public_key: line(1), comment: 'ann@example', added_at: '2026-01-01T00:00:00.000Z' })
  expect(await tokens.list()).toContainEqual(expect.objectContaining({ name: 'ann', ssh_keys: [key] }))
  expect(await keys.identify(line(1))).toMatchObject({ name: 'ann', role: 'read', projects: ['class-*'] })
  expect(await keys.identify(line(2))).toBeUndefined()

  const refusals = [
    [bob.token_id, line(1), 409, `The token ann (${ann.token_id}) has this key already`],
    [ann.token_id, `${line(1)} again`, 409, 'has this key already'],
    [rack.token_id, line(2), 400, 'a join token is for a compute'],
    ['none', line(2), 404, 'No such token: none'],
  ] as const
  for (const [token, text, status, message] of refusals)
    await expect(keys.add(token, text)).rejects.toMatchObject({ status, message: expect.stringContaining(message) })

  // All at once: none is lost, and none is too many.
  const many = Array.from({ length: 17 }, (_, index) => keys.add(bob.token_id, line(10 + index)))
  const added = (await Promise.allSettled(many)).filter(({ status }) => status === 'fulfilled')
  expect(added).toHaveLength(16)
  await keys.remove(bob.token_id, (await parseSshKey(line(10))).key_id)
  expect(await keys.identify(line(10))).toBeUndefined()
  expect(await keys.identify(line(11))).toMatchObject({ name: 'bob' })
  await expect(keys.remove(bob.token_id, key.key_id)).rejects.toMatchObject({ status: 404 })

  clock.now += 60_000
  expect(await keys.identify(line(1))).toBeUndefined()
  await tokens.revoke(bob.token_id)
  expect(await keys.identify(line(11))).toBeUndefined()
})
