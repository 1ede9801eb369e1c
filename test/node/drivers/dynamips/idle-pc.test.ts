import { describe, expect, test } from 'vitest'
import {
  autoIdlePc,
  type Clock,
  idleProposals,
  type MeasuredRouter,
} from '../../../../runtime/node/drivers/dynamips/idle-pc.ts'
import { defaultDynamipsTimeouts } from '../../../../runtime/node/drivers/dynamips/timeouts.ts'
import { fakeHypervisor } from './fake-hypervisor.ts'
import { recorded } from './recorded.ts'

/** A clock that passes as fast as somebody waits for it. */
class FastClock implements Clock {
  ms = 0
  readonly pauses: number[] = []

  now(): number {
    return this.ms
  }

  async pause(ms: number): Promise<void> {
    this.ms += ms
    this.pauses.push(ms)
  }
}

interface Told {
  /** Percent of a processor that it takes with a value; 100 with others. */
  readonly loads?: Readonly<Record<string, number>>
  /** What it answers in place of what was recorded; undefined: nothing. */
  readonly other?: Readonly<Record<string, readonly string[] | undefined>>
  readonly isFresh?: boolean
}

/** A dynamips that says what was recorded, and takes processor time by the fast clock. */
async function router({ loads = {}, other = {}, isFresh = true }: Told = {}) {
  const clock = new FastClock()
  let load = 100
  let [used, since] = [0, 0]
  const { client, commands, socket } = await fakeHypervisor((command) => {
    used += ((clock.ms - since) / 1000) * (load / 100)
    since = clock.ms
    const value = /^vm set_idle_pc_online "router" 0 "(.*)"$/.exec(command)?.[1]
    if (value !== undefined) load = loads[value] ?? 100
    if (Object.hasOwn(other, command)) return other[command]
    if (value !== undefined) return ['100-OK']
    if (command === 'vm cpu_usage "router" 0') return [`101 ${Math.floor(used)}`, '100-OK']
    return recorded[command] ?? ['202-Unknown command']
  })
  const gone = new AbortController()
  const measured: MeasuredRouter = {
    ...{ client, name: 'router', isFresh, timeouts: defaultDynamipsTimeouts, signal: gone.signal, clock },
  }
  return { measured, clock, commands, socket, gone }
}

const clear = 'vm set_idle_pc_online "router" 0 "0x0"'
const look = 'vm get_idle_pc_prop "router" 0'
const trying = (value: string) => [
  `vm set_idle_pc_online "router" 0 "${value}"`,
  'vm cpu_usage "router" 0',
  'vm cpu_usage "router" 0',
]

describe('proposals', () => {
  test('are those of a router after the time for its boot', async () => {
    const { measured, clock, commands } = await router()
    const proposals = await idleProposals(measured)
    expect(proposals[0]).toBe('0x6000805c [37]')
    expect(proposals).toHaveLength(10)
    expect(clock.pauses).toEqual([20_000])
    expect(commands).toEqual([clear, look])
  })

  test('of a router that ran before are measured at once, without its idle PC', async () => {
    const { measured, clock, commands } = await router({ isFresh: false })
    expect(await idleProposals(measured)).toHaveLength(10)
    expect(clock.pauses).toEqual([])
    expect(commands).toEqual([clear, look])
  })

  test('may be empty', async () => {
    const { measured } = await router({ other: { [look]: ['100-OK'] } })
    expect(await idleProposals(measured)).toEqual([])
  })
})

describe('the value', () => {
  test('is the first proposal that brings the load below 70 %', async () => {
    const { measured, clock, commands } = await router({
      loads: { '0x60008068': 100, '0x60008074': 60, '0x60008080': 2 },
    })
    expect(await autoIdlePc(measured)).toBe('0x60008074')
    expect(clock.pauses).toEqual([20_000, 3000, 3000, 3000])
    const tried = ['0x6000805c', '0x60008068', '0x60008074'].flatMap(trying)
    expect(commands).toEqual([clear, look, ...tried])
  })

  test('is measured by the system where that is possible', async () => {
    const { measured, clock, commands } = await router()
    const watchLoad = async () => {
      const since = clock.ms
      return async () => (clock.ms === since + 3000 && commands.at(-1)?.includes('0x60008068') ? 69 : 70)
    }
    expect(await autoIdlePc({ ...measured, watchLoad })).toBe('0x60008068')
    expect(commands).not.toContain('vm cpu_usage "router" 0')
  })

  test('is else measured by dynamips', async () => {
    const { measured, commands } = await router({ loads: { '0x6000805c': 2 } })
    expect(await autoIdlePc({ ...measured, watchLoad: async () => undefined })).toBe('0x6000805c')
    expect(commands).toContain('vm cpu_usage "router" 0')
  })

  test('is a conflict without a result, with the tried values', async () => {
    const { measured, commands } = await router()
    await expect(autoIdlePc(measured)).rejects.toMatchObject({
      status: 409,
      message: expect.stringMatching(/^No idle-PC value was found .*0x6000805c \(100 %\), 0x60008068 \(100 %\)/),
    })
    expect(commands.filter((it) => it.startsWith('vm cpu_usage'))).toHaveLength(20)
  })

  test('is a conflict without proposals', async () => {
    const { measured } = await router({ other: { [look]: ['100-OK'] } })
    await expect(autoIdlePc(measured)).rejects.toMatchObject({
      status: 409,
      message: 'No idle-PC value was found for this image: dynamips proposed none',
    })
  })

  test('is chosen only from values that can be set', async () => {
    const lines = ['101 0xffffffff80008054 [40]', '101 nothing', '101 0x6000 [30]', '101 0x60008054', '100-OK']
    const { measured, commands } = await router({ other: { [look]: lines } })
    await expect(autoIdlePc(measured)).rejects.toMatchObject({ status: 409 })
    expect(commands).toEqual([clear, look, ...trying('0x60008054')])
  })
})

describe('a measurement ends', () => {
  test.each([
    ['it is refused', { [look]: ['214-Bad CPU specified'] }, 'Bad CPU'],
    ['dynamips does not send the processor time', { 'vm cpu_usage "router" 0': ['100-OK'] }, 'sent no number'],
  ])('when %s', async (_, other, message) => {
    const { measured } = await router({ other })
    await expect(autoIdlePc(measured)).rejects.toThrow(message)
  })

  test('when the caller cancels during the boot', async () => {
    const { measured, commands, clock, gone } = await router()
    clock.pause = (_ms: number, signal?: AbortSignal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason))
        gone.abort(new Error('went away'))
      })
    await expect(autoIdlePc(measured)).rejects.toThrow('went away')
    expect(commands).toEqual([clear])
  })

  test.each([
    ['the caller cancels', 'aborted'],
    ['dynamips ends', 'closed'],
  ])('when %s during the sampling', async (_, code) => {
    const { measured, commands, gone, socket } = await router({ other: { [look]: undefined } })
    const answer = autoIdlePc(measured)
    answer.catch(() => {})
    await expect.poll(() => commands).toHaveLength(2)
    if (code === 'aborted') gone.abort()
    else socket.destroy()
    await expect(answer).rejects.toMatchObject({ code })
  })
})
