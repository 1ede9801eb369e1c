import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { Neighbours } from '../../../../runtime/node/keeper/simulator/stack/neighbours.ts'
import { TestPc, Wire } from './wire.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
})

/** A pc alone, with an address and name servers that are not there. */
async function boot(wire: Wire): Promise<TestPc> {
  const it = TestPc.boot(wire, 1, 'ip 10.0.0.1/24', 'ip dns 10.0.0.53 10.0.0.54')
  await vi.advanceTimersByTimeAsync(1000)
  return it
}

test.for([
  ['ip 10.0.0.9/24', 50],
  ['ip 2001:db8::1/64', 50],
  ['ip auto', 50],
  ['dhcp', 50],
  ['sleep 60', 50],
  ['ping 10.0.0.7', 50],
  ['ping fe80::7', 50],
  // Nobody is there, which is known after three seconds; an answer is not waited for any longer.
  ['ping 10.0.0.7 -2 -w 600000', 5000],
  ['ping 10.0.0.7 -3 -w 600000', 5000],
  ['trace 10.0.0.7', 3500],
  ['ping www.example', 50],
] as const)('nothing of "%s" is left %i ms later, when the pc is closed', async ([command, ms]) => {
  const wire = new Wire()
  const it = await boot(wire)
  it.type(`${command}\r`)
  await vi.advanceTimersByTimeAsync(ms)
  it.pc.close()
  const sent = wire.frames.length
  await vi.advanceTimersByTimeAsync(0)
  expect(vi.getTimerCount()).toBe(0)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(wire.frames).toHaveLength(sent)
})

test('no ARP or neighbour request is repeated after the end of a command', async () => {
  const asked: string[] = []
  const neighbours = new Neighbours((address) => asked.push(address))
  const first = neighbours.resolve('one')
  neighbours.close()
  expect(await first).toBeUndefined()
  expect(await neighbours.resolve('two')).toBeUndefined()
  expect(asked).toEqual(['one'])
  expect(vi.getTimerCount()).toBe(0)
})

test('Ctrl-C ends the duplicate address detection, and the address stays', async () => {
  const wire = new Wire()
  const it = await boot(wire)
  it.type('ip 10.0.0.9/24\r')
  await vi.advanceTimersByTimeAsync(50)
  const sent = wire.frames.length
  it.type('\x03')
  await vi.advanceTimersByTimeAsync(1000)
  expect(wire.frames).toHaveLength(sent)
  it.type('show ip\r')
  await vi.advanceTimersByTimeAsync(0)
  expect(it.shown).toContain('IP/MASK     : 10.0.0.1/24')
})

test('Ctrl-C ends the resolution of a name at the first name server', async () => {
  const it = await boot(new Wire())
  it.type('ping www.example\r')
  await vi.advanceTimersByTimeAsync(50)
  it.type('\x03')
  // The server itself is being asked for, which takes three seconds.
  await vi.advanceTimersByTimeAsync(4000)
  expect(it.shown).toMatch(/PC1> $/)
})
