import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Send } from '../../../src/client/transport.ts'
import { Fleet } from '../../../src/fleet/fleet.ts'
import { isLong, LongWaits } from '../../../src/fleet/long-waits.ts'
import type { Compute, ComputeRecord } from '../../../src/model/compute.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
})

test('waits share a timer, which ends by itself, and tells those that go on', async () => {
  const held: Promise<unknown>[] = []
  const waits = new LongWaits((work) => held.push(work))
  const told: string[] = []
  const begin = (name: string) => {
    const wait = waits.begin()
    void wait.told.then((why) => told.push(`${name} ${why === isLong}`))
    return wait
  }
  for (let index = 0; index < 100; index++) begin('short').end()
  const ended = begin('ended')
  begin('long')
  expect([held.length, vi.getTimerCount()]).toEqual([1, 1])
  ended.end()
  await vi.advanceTimersByTimeAsync(1000)
  await Promise.all(held)
  expect([told, vi.getTimerCount()]).toEqual([['long true'], 0])
  begin('later')
  expect(held).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(1000)
  expect(told).toEqual(['long true', 'later true'])
})

const record: ComputeRecord = {
  ...{ compute_id: 'one', name: 'one', protocol: 'http', host: '127.0.0.1', port: 1, user: null, password: null },
}

/** A fleet as an isolate has it, with one compute that is connected, and a request to it. */
function asking(protocol: ComputeRecord['protocol'], send: Send) {
  const registry = { load: async () => [], save: async () => {}, remove: async () => {} }
  const joined = { has: () => true, addressOf: () => undefined, dismiss() {}, close() {} }
  const fleet = Fleet.empty({
    ...{ registry, transport: () => send, version: '1.0.0', upkeep: false, endsWithRequest: { waitUntil() {} } },
    holder: { ...joined, transport: () => send, sockets: () => () => expect.fail('it opens no websocket') },
  })
  fleet.enrol({ ...record, protocol })
  const found = fleet.find('one')
  fleet.recall([{ ...(found?.show() as Compute), connected: true, last_error: null }], 0)
  const { signal } = new AbortController()
  return fleet.send('one', { method: 'GET', path: '/x', headers: {}, body: null, signal })
}

const never = new Promise<never>(() => {})
const version = async () => Response.json({ version: '1.0.0', platform: 'linux', node_types: [] })

test('a request that has no timer of its own ends when its compute is silent', async () => {
  const asked: string[] = []
  const failed = asking('http', ({ path }) => {
    asked.push(path)
    return never
  }).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(17_000)
  expect(await failed).toMatchObject({ status: 504, message: expect.stringContaining('did not answer in 15 s') })
  expect(asked).toEqual(['/x', '/v2/compute/capabilities'])
})

test('a compute that is busy is awaited for ten minutes, and what answers meanwhile is taken', async () => {
  const busy = asking('http', ({ path }) => (path === '/x' ? never : version())).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(620_000)
  expect(await busy).toMatchObject({ status: 504, message: expect.stringContaining('in 10 minutes') })
  const late = asking('http', ({ path }) =>
    path === '/x' ? new Promise((resolve) => setTimeout(() => resolve(new Response('late')), 60_000)) : version(),
  )
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await ((await late) as Response).text()).toBe('late')
  expect(vi.getTimerCount()).toBe(0)
})

test('a joined compute is looked after by its tunnel alone', async () => {
  const asked: string[] = []
  let answer = (_: Response) => {}
  const asks = asking('tunnel', ({ path }) => {
    asked.push(path)
    return new Promise((resolve) => {
      answer = resolve
    })
  })
  await vi.advanceTimersByTimeAsync(60_000)
  answer(new Response('late'))
  expect(await ((await asks) as Response).text()).toBe('late')
  expect([asked, vi.getTimerCount()]).toEqual([['/x'], 0])
})
