import { expect, test } from 'vitest'
import type { Session } from '../../../../src/model/access/identity.ts'
import { EndedSessions } from '../../../../src/server/auth/ended-sessions.ts'
import { Sessions, sessionLifeMs } from '../../../../src/server/auth/sessions.ts'
import { signingKey } from '../../../../src/server/auth/signed-text.ts'

async function sessions(clock = { now: 1_000_000 }) {
  const key = await signingKey('a secret of tests that is long enough', 'sessions')
  const ended = new EndedSessions()
  const open = () =>
    new Sessions({
      key: async () => key,
      keeper: { holds: async (it) => !ended.has(it), end: async (it) => ended.add(it, clock.now) },
      now: () => clock.now,
    })
  return { sessions: open(), another: open(), clock, ended }
}

const anna = { name: 'anna', role: 'operate', key: 'configured:user' } as const
const secretOf = () => 'anna:geheim'

test('a session is valid in every process with the key, until it ends', async () => {
  const { sessions: here, another, clock } = await sessions()
  const { session, text } = await here.begin(anna, 'anna:geheim')
  expect(session).toMatchObject({ ...anna, endsAt: clock.now + sessionLifeMs })
  expect(await another.read(text, secretOf)).toEqual(session)
  for (const bad of ['', 'x', `${text}x`, `x${text}`, text.slice(0, -1)]) {
    expect(await here.read(bad, secretOf)).toBe(undefined)
  }
  clock.now += sessionLifeMs
  expect(await here.read(text, secretOf)).toBe(undefined)
})

test('a session is over when it was ended, and when the credentials change', async () => {
  const { sessions: here, another } = await sessions()
  const [one, other] = [await here.begin(anna, 'anna:geheim'), await here.begin(anna, 'anna:geheim')]
  await another.end(one.session)
  expect(await here.read(one.text, secretOf)).toBe(undefined)
  expect(await here.read(other.text, secretOf)).toEqual(other.session)
  expect(await here.read(other.text, () => 'anna:new')).toBe(undefined)
  expect(await here.read(other.text, () => undefined)).toBe(undefined)
  const token = await here.begin({ name: 'ci', role: 'read', key: 'token:1', expiresAt: 1_005_000 }, undefined)
  expect(token.session.endsAt).toBe(1_005_000)
  expect(await here.read(token.text, () => undefined)).toEqual(token.session)
})

test('the list of ended sessions is limited, and none of them becomes valid again', () => {
  const ended = new EndedSessions()
  const all: Session[] = Array.from({ length: 25_000 }, (_, index) => ({
    ...{ id: `s${index}`, name: 'a', role: 'read', key: 'k' },
    ...{ begunAt: 1000 + index, endsAt: 1_000_000 + index },
  }))
  for (const it of all) ended.add(it, 500_000)
  expect(ended.record().sessions.length).toBeLessThanOrEqual(10_000)
  const again = new EndedSessions(JSON.parse(JSON.stringify(ended.record())))
  expect(all.every((it) => again.has(it))).toBe(true)
  expect(again.has({ id: 'later', begunAt: 26_000 })).toBe(false)
  // Those whose time is over anyway are not kept.
  ended.add({ id: 'last', begunAt: 1_900_000, endsAt: 3_000_000 }, 2_000_000)
  expect(ended.record().sessions).toHaveLength(1)
})
