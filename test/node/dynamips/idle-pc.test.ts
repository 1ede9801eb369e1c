import { describe, expect, test } from 'vitest'
import {
  autoIdlePc,
  type Clock,
  type IdlePcOptions,
  idleProposals,
} from '../../../runtime/node/kinds/dynamips/idle-pc.ts'
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
}

/** A dynamips that says what was recorded, and takes processor time by the fast clock. */
async function router({ loads = {}, other = {} }: Told = {}) {
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
  const options: IdlePcOptions = { client, name: 'router', clock }
  return { options, clock, commands, socket }
}

const before = [
  'vm get_status "router"',
  'vm set_idle_pc "router" "0x0"',
  'vm start "router"',
  'vm get_idle_pc_prop "router" 0',
]
const trying = (value: string) => [
  `vm set_idle_pc_online "router" 0 "${value}"`,
  'vm cpu_usage "router" 0',
  'vm cpu_usage "router" 0',
]
const running = { 'vm get_status "router"': ['100-2'] }

describe('proposals', () => {
  test('are those of a router that has had its time to boot, and is stopped again', async () => {
    const { options, clock, commands } = await router()
    const proposals = await idleProposals(options)
    expect(proposals[0]).toBe('0x6000805c [37]')
    expect(proposals).toHaveLength(10)
    expect(clock.pauses).toEqual([20_000])
    expect(commands).toEqual([...before, 'vm stop "router"'])
  })

  test('of a router that runs are measured as it is, without its idle PC', async () => {
    const { options, clock, commands } = await router({ other: running })
    expect(await idleProposals(options)).toHaveLength(10)
    expect(clock.pauses).toEqual([])
    expect(commands).toEqual([
      'vm get_status "router"',
      'vm set_idle_pc_online "router" 0 "0x0"',
      'vm get_idle_pc_prop "router" 0',
    ])
  })

  test('may be none', async () => {
    const { options } = await router({ other: { 'vm get_idle_pc_prop "router" 0': ['100-OK'] } })
    expect(await idleProposals(options)).toEqual([])
  })
})

describe('the value', () => {
  test('is the first proposal that brings the load below 70 %', async () => {
    const { options, clock, commands } = await router({
      loads: { '0x60008068': 100, '0x60008074': 60, '0x60008080': 2 },
    })
    expect(await autoIdlePc(options)).toBe('0x60008074')
    expect(clock.pauses).toEqual([20_000, 3000, 3000, 3000])
    const tried = ['0x6000805c', '0x60008068', '0x60008074'].flatMap(trying)
    expect(commands).toEqual([...before, ...tried, 'vm stop "router"'])
  })

  test('is measured by whoever can', async () => {
    const { options, clock, commands } = await router()
    const watchLoad = () => {
      const since = clock.ms
      return async () => (clock.ms === since + 3000 && commands.at(-1)?.includes('0x60008068') ? 69 : 70)
    }
    expect(await autoIdlePc({ ...options, watchLoad })).toBe('0x60008068')
    expect(commands).not.toContain('vm cpu_usage "router" 0')
  })

  test('is measured by dynamips where nobody can', async () => {
    const { options, commands } = await router({ loads: { '0x6000805c': 2 } })
    expect(await autoIdlePc({ ...options, watchLoad: () => undefined })).toBe('0x6000805c')
    expect(commands).toContain('vm cpu_usage "router" 0')
  })

  test('that does not exist is a conflict, which tells what was tried', async () => {
    const { options, commands } = await router()
    await expect(autoIdlePc(options)).rejects.toMatchObject({
      status: 409,
      message: expect.stringMatching(/^No idle-PC value was found .*0x6000805c \(100 %\), 0x60008068 \(100 %\)/),
    })
    expect(commands.filter((it) => it.startsWith('vm cpu_usage'))).toHaveLength(20)
    expect(commands.at(-1)).toBe('vm stop "router"')
  })

  test('is looked for only among those that can be set', async () => {
    const lines = ['101 0xffffffff80008054 [40]', '101 nothing', '101 0x6000 [30]', '101 0x60008054', '100-OK']
    const { options, commands } = await router({ other: { 'vm get_idle_pc_prop "router" 0': lines } })
    await expect(autoIdlePc(options)).rejects.toMatchObject({ status: 409 })
    expect(commands).toEqual([...before, ...trying('0x60008054'), 'vm stop "router"'])
  })

  test('is not left set on a router that ran before when none helps', async () => {
    const { options, commands } = await router({ other: running })
    await expect(autoIdlePc(options)).rejects.toMatchObject({ status: 409 })
    expect(commands.at(-1)).toBe('vm set_idle_pc_online "router" 0 "0x0"')
    expect(commands).not.toContain('vm stop "router"')
  })

  test('is left set on a router that ran before', async () => {
    const { options, commands } = await router({ other: running, loads: { '0x6000805c': 2 } })
    expect(await autoIdlePc(options)).toBe('0x6000805c')
    expect(commands.at(-3)).toBe('vm set_idle_pc_online "router" 0 "0x6000805c"')
  })
})

describe('a router that was started is stopped', () => {
  test.each([
    ['its start is refused', { 'vm start "router"': ["209-unable to start VM instance 'router'"] }, 'unable to start'],
    ['its measurement is refused', { 'vm get_idle_pc_prop "router" 0': ['214-Bad CPU specified'] }, 'Bad CPU'],
    ['its processor time is not told', { 'vm cpu_usage "router" 0': ['100-OK'] }, 'did not say'],
  ])('when %s', async (_, other, message) => {
    const { options, commands } = await router({ other })
    await expect(autoIdlePc(options)).rejects.toMatchObject({ status: 409, message: expect.stringContaining(message) })
    expect(commands.at(-1)).toBe('vm stop "router"')
  })

  test('when who asked goes away during the boot', async () => {
    const { options, commands, clock } = await router()
    const gone = new AbortController()
    clock.pause = (_ms: number, signal?: AbortSignal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason))
        gone.abort(new Error('went away'))
      })
    await expect(autoIdlePc({ ...options, signal: gone.signal })).rejects.toThrow('went away')
    expect(commands).toEqual([...before.slice(0, 3), 'vm stop "router"'])
  })

  test('when who asked goes away during the measurement, after that', async () => {
    const gone = new AbortController()
    const { options, commands, socket } = await router({ other: { 'vm get_idle_pc_prop "router" 0': undefined } })
    const answer = autoIdlePc({ ...options, signal: gone.signal })
    answer.catch(() => {})
    await expect.poll(() => commands).toHaveLength(4)
    gone.abort(new Error('went away'))
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(commands).toHaveLength(4)
    socket.write('101 0x60008054 [40]\r\n100-OK\r\n')
    await expect(answer).rejects.toThrow('went away')
    expect(commands.at(-1)).toBe('vm stop "router"')
  })

  test('when the time is over', async () => {
    const { options, commands, socket } = await router({ other: { 'vm get_idle_pc_prop "router" 0': undefined } })
    const answer = autoIdlePc({ ...options, bounds: { totalMs: 50 } })
    setTimeout(() => socket.write('100-OK\r\n'), 100)
    await expect(answer).rejects.toMatchObject({ status: 408 })
    expect(commands.at(-1)).toBe('vm stop "router"')
  })
})

test.each([
  ['suspended', '100-3'],
  ['shutting down', '100-1'],
  ['in a state that is not known', '100-9'],
])('a router that is %s is a conflict, and left alone', async (state, line) => {
  const { options, commands } = await router({ other: { 'vm get_status "router"': [line] } })
  await expect(autoIdlePc(options)).rejects.toMatchObject({ status: 409, message: expect.stringContaining(state) })
  expect(commands).toHaveLength(1)
})

test('a dynamips that ends is a conflict at once', async () => {
  const { options, socket, commands } = await router({ other: { 'vm get_idle_pc_prop "router" 0': undefined } })
  const answer = autoIdlePc(options)
  answer.catch(() => {})
  await expect.poll(() => commands).toHaveLength(4)
  socket.destroy()
  await expect(answer).rejects.toMatchObject({ status: 409, message: expect.stringContaining('it has ended') })
})
