import { expect, test } from 'vitest'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { networkOf } from '../../../../src/lib/http/network.ts'
import { type LoginAttempt, LoginLimit } from '../../../../src/server/auth/login-limit.ts'

/** A limit of 10 a minute, a clock, and what logging in says: true, false, or 429. */
function limited(perMinute = 10) {
  let now = 1_000_000
  const told: string[] = []
  let compared = 0
  const limit = new LoginLimit({
    perMinute: () => perMinute,
    limited: ({ address }) => told.push(address),
    now: () => now,
  })
  const login = async (
    secret: string,
    more: Partial<LoginAttempt> = {},
    isAsync = false,
  ): Promise<boolean | number> => {
    const check = () => {
      compared += 1
      return secret.startsWith('right') ? true : undefined
    }
    try {
      const asked = { kind: 'basic', address: '192.0.2.1', name: 'anna', secret, ...more } as const
      return (await limit.attempt<boolean>(asked, isAsync ? async () => check() : check)) ?? false
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429) throw error
      expect(Number(error.headers['Retry-After'])).toBeGreaterThan(0)
      return 429
    }
  }
  let guessed = 0
  const guesses = (count: number, more: Partial<LoginAttempt> = {}, isAsync = false) =>
    Promise.all(Array.from({ length: count }, () => login(`guess ${guessed++}`, more, isAsync)))
  const wait = (seconds: number) => {
    now += seconds * 1000
  }
  return { limit, login, guesses, wait, told, compared: () => compared }
}

const times = (count: number, value: unknown) => Array.from({ length: count }, () => value)

test.for([false, true])(
  'of many wrong log-ins at once only a few are checked, found wrong %s later',
  async (isAsync) => {
    const { guesses, compared, told, login, wait } = limited()
    expect(await guesses(30, {}, isAsync)).toEqual([...times(10, false), ...times(20, 429)])
    expect(compared()).toBe(10)
    expect(told).toEqual(['192.0.2.1'])
    // A right guess is not told apart from the others.
    expect(await login('right')).toBe(429)
    wait(6)
    expect(await login('right')).toBe(true)
  },
)

test('the same wrong credentials again and again are refused, too', async () => {
  const { login } = limited()
  expect(await Promise.all(times(30, 'old').map((it) => login(it as string)))).toEqual([
    ...times(10, false),
    ...times(20, 429),
  ])
  // They were one guess: who has the right ones is not held up by a program that goes on with the old ones.
  expect(await login('right')).toBe(true)
})

test('right log-ins never delay each other', async () => {
  {
    const { login } = limited()
    expect(await Promise.all(times(500, 0).map(() => login('right')))).toEqual(times(500, true))
  }
})

test('no user is locked out by name alone', async () => {
  const { guesses, login } = limited()
  for (let host = 1; host <= 200; host++) await guesses(10, { address: `198.51.100.${host}` })
  expect(await login('right')).toBe(true)
})

test('a client with invented names is limited by address, and does not delay users who logged in before', async () => {
  const { login } = limited()
  expect(await login('right', { name: 'anna' })).toBe(true)
  const tries = Array.from({ length: 200 }, (_, index) => login('guess', { name: `name ${index}` }))
  expect(await Promise.all(tries)).toEqual([...times(100, false), ...times(100, 429)])
  expect(await login('right', { name: 'anna' })).toBe(true)
  expect(await login('right', { name: 'ben' })).toBe(429)
  expect(await login('right', { name: 'ben', address: '192.0.2.2' })).toBe(true)
})

test('a token of the service, or a ticket, is accepted, whatever others tried', async () => {
  const { guesses, login } = limited()
  const made = (letter: string) => `pb_0123456789abcdef_${letter.repeat(64)}`
  for (let name = 0; name < 30; name++) await guesses(10, { name: `${name}` })
  const limit = new LoginLimit({ perMinute: () => 10 })
  for (const [kind, secret] of [
    ['bearer', made('a')],
    ['ticket', 'b'],
  ] as const) {
    const asked = { kind, address: '192.0.2.1', name: '', secret } as const
    for (let count = 0; count < 10; count++) expect(await limit.attempt(asked, async () => undefined)).toBe(undefined)
    await expect(limit.attempt(asked, async () => undefined)).rejects.toMatchObject({ status: 429 })
    expect(await limit.attempt(asked, async () => 'in')).toBe('in')
  }
  expect(await login('right', { kind: 'bearer', name: 'token' })).toBe(429)
})

test('the memory for wrong log-ins is limited', async () => {
  const { limit, guesses } = limited()
  for (let host = 0; host < 30_000; host++)
    await guesses(1, { address: `10.${host >> 16}.${(host >> 8) & 255}.${host & 255}` })
  expect(limit.remembered).toBeLessThanOrEqual(5 * 10_000)
})

test('wrong log-ins are counted, and a burst is reported once', async () => {
  const { limit, guesses, told, wait } = limited()
  await guesses(30)
  wait(30)
  await guesses(30)
  expect(told).toHaveLength(1)
  wait(61)
  await guesses(30)
  expect(told).toHaveLength(2)
  const [failures, refusals] = limit
    .families()
    .map(({ samples }) => samples.find(({ labels }) => labels?.kind === 'basic')?.value)
  expect(Number(failures) + Number(refusals)).toBe(90)
  expect(failures).toBe(10 + 5 + 10)
})

test('without a limit, and where no address is known, nothing is refused', async () => {
  expect(await limited(0).guesses(30)).toEqual(times(30, false))
  expect(await limited().guesses(30, { address: '' })).toEqual(times(30, false))
})

test.for([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:0:1::5', '2001:db8:0:1::/64'],
  ['2001:DB8::1:0:0:5', '2001:db8:0:0::/64'],
  ['2001:0db8:0000:0001:1:2:3:4', '2001:db8:0:1::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
] as const)('%s is of the network %s', ([address, network]) => {
  expect(networkOf(address)).toBe(network)
})

test('a limit that is shared with another process applies here, too, and right log-ins are not counted there', async () => {
  // As two isolates of a Worker that share a count.
  const counts = new Map<string, number>()
  const counted = async (key: string) => {
    counts.set(key, (counts.get(key) ?? 0) + 1)
    return (counts.get(key) ?? 0) <= 10
  }
  const [here, there] = [1, 2].map(() => new LoginLimit({ perMinute: () => 10, now: () => 0, counted }))
  const login = async (limit: LoginLimit | undefined, secret: string, name = 'anna') => {
    const tried = { kind: 'basic', address: '192.0.2.1', name, secret } as const
    try {
      return await limit?.attempt(tried, () => secret === 'right' || undefined)
    } catch (error) {
      return (error as ApiError).status
    }
  }
  for (let count = 0; count < 20; count++) expect(await login(here, 'right')).toBe(true)
  expect(counts.size).toBe(0)
  for (let count = 0; count < 10; count++) expect(await login(here, `wrong ${count}`)).toBeUndefined()
  expect(await login(here, 'wrong again')).toBe(429)
  // The other process learns it with the first wrong one that it sees itself.
  expect(await login(there, 'wrong there')).toBeUndefined()
  expect(await login(there, 'wrong there, too')).toBe(429)
  expect(await login(there, 'wrong', 'ben')).toBeUndefined()
  expect([...counts.values()]).toEqual([11, 1])
})
