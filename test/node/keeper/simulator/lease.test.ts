import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { formatIp4 } from '../../../../runtime/node/keeper/simulator/stack/address.ts'
import { read16, read32, write32 } from '../../../../runtime/node/keeper/simulator/stack/bytes.ts'
import { ip, server } from './server.ts'
import { TestPc, Wire } from './wire.ts'

const seconds = 3600
/** Of a lease for which the server names no other times (RFC 2131, 4.4.5). */
const [t1, t2] = [seconds / 2, seconds * 0.875]
const udpAt = 34
const dhcpAt = 42

/** When a request was sent, in whole seconds since the lease began, whereto, and with which address of its own. */
interface Sent {
  readonly at: number
  readonly to: string
  readonly own: string
}

/** A pc with a lease, and the server of it, which says what the test wants: 5 acknowledges, 6 refuses, 0 is silence. */
class Lease {
  readonly pc: TestPc
  readonly requests: Sent[] = []
  reply: 0 | 5 | 6 = 5

  private constructor(pc: TestPc) {
    this.pc = pc
  }

  static async take(...more: readonly number[]): Promise<Lease> {
    const wire = new Wire()
    const lease = new Lease(await TestPc.boot(wire, 1))
    server(wire, '10.0.0.1', (_, __, toPort, data) => {
      const type = data[242] === 1 ? 2 : lease.reply
      if (toPort !== 67 || data[242] === 7 || type === 0) return undefined
      const message = new Uint8Array(300)
      message.set(data.subarray(0, 240))
      message[0] = 2
      write32(message, 16, ip('10.0.0.50'))
      const time = [51, 4, 0, 0, seconds >> 8, seconds & 255]
      message.set([53, 1, type, 54, 4, 10, 0, 0, 1, ...time, 1, 4, 255, 255, 255, 0, ...more, 255], 240)
      return [67, message]
    })
    await lease.run('dhcp')
    const began = Date.now()
    wire.join((frame) => {
      if (read16(frame, 12) !== 0x0800 || frame[23] !== 17 || read16(frame, udpAt + 2) !== 67) return
      lease.requests.push({
        at: Math.round((Date.now() - began) / 1000),
        to: formatIp4(read32(frame, 30)),
        own: formatIp4(read32(frame, dhcpAt + 12)),
      })
    })
    return lease
  }

  /** Runs a command that needs no time to speak of. */
  async run(command: string): Promise<string> {
    const shown = this.pc.run(command)
    await vi.advanceTimersByTimeAsync(10)
    return shown
  }

  async address(): Promise<string | undefined> {
    return /IP\/MASK {5}: (\S+)/.exec(await this.run('show ip'))?.[1]
  }

  async pass(time: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(time * 1000)
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
})

test('a lease is renewed with its server at T1, and again half a lease later', async () => {
  const lease = await Lease.take()
  await lease.pass(t1 - 1)
  expect(lease.requests).toEqual([])
  await lease.pass(2)
  expect(lease.requests).toEqual([{ at: t1, to: '10.0.0.1', own: '10.0.0.50' }])
  expect(await lease.run('show ip')).toMatch(/DHCP LEASE {2}: 3599, 3600\/1800\/3150/)
  await lease.pass(seconds)
  expect(lease.requests.map(({ at }) => at)).toEqual([t1, 2 * t1, 3 * t1])
  expect(await lease.address()).toBe('10.0.0.50/24')
})

test('any server is asked after T2, when the server of the lease does not answer', async () => {
  const lease = await Lease.take()
  lease.reply = 0
  await lease.pass(t2 - 1)
  expect(lease.requests[0]?.at).toBe(t1)
  expect(new Set(lease.requests.map(({ to }) => to))).toEqual(new Set(['10.0.0.1']))
  // Half of what is left until T2, and no more often than every minute.
  expect(lease.requests.length).toBeGreaterThan(2)
  expect(lease.requests.length).toBeLessThan(10)
  const before = lease.requests.length
  lease.reply = 5
  await lease.pass(2)
  expect(lease.requests.slice(before)).toEqual([{ at: t2, to: '255.255.255.255', own: '10.0.0.50' }])
  await lease.pass(seconds - t2 + 10)
  expect(await lease.address()).toBe('10.0.0.50/24')
})

test('the address is removed at the end of the lease, when no server answers', async () => {
  const lease = await Lease.take()
  lease.reply = 0
  await lease.pass(seconds - 1)
  expect(await lease.address()).toBe('10.0.0.50/24')
  await lease.pass(2)
  expect(await lease.address()).toBe('0.0.0.0/0')
  expect(await lease.run('show ip')).not.toContain('DHCP')
  const before = lease.requests.length
  await lease.pass(seconds)
  expect(lease.requests).toHaveLength(before)
})

test('the address is removed at once when its server refuses it', async () => {
  const lease = await Lease.take()
  lease.reply = 6
  await lease.pass(t1 + 1)
  expect(await lease.address()).toBe('0.0.0.0/0')
})

test('the server may set T1 and T2', async () => {
  const lease = await Lease.take(58, 4, 0, 0, 0, 100, 59, 4, 0, 0, 0, 200)
  lease.reply = 0
  await lease.pass(202)
  expect(lease.requests).toMatchObject([
    { at: 100, to: '10.0.0.1' },
    { at: 161, to: '10.0.0.1' },
    { at: 200, to: '255.255.255.255' },
  ])
})

test.for(['dhcp -x', 'clear ip', 'ip 10.0.0.60/24'])('"%s" ends the renewal of the lease', async (command) => {
  const lease = await Lease.take()
  lease.pc.type(`${command}\r`)
  await lease.pass(1)
  const before = lease.requests.length
  const address = await lease.address()
  await lease.pass(2 * seconds)
  expect(lease.requests).toHaveLength(before)
  expect(await lease.address()).toBe(address)
})

test('a step of the wall clock neither ends nor prolongs a lease', async () => {
  const lease = await Lease.take()
  vi.setSystemTime(Date.now() + 100 * seconds * 1000)
  await lease.pass(1)
  expect([lease.requests, await lease.address()]).toEqual([[], '10.0.0.50/24'])
  vi.setSystemTime(0)
  await lease.pass(t1)
  expect(lease.requests).toHaveLength(1)
})

test('"dhcp -r" renews the lease with its server', async () => {
  const lease = await Lease.take()
  expect(await lease.run('dhcp -r')).toBe('RA IP 10.0.0.50/24\r\n')
  expect(lease.requests).toMatchObject([{ to: '10.0.0.1', own: '10.0.0.50' }])
})

test('nothing of a lease is left when the pc is closed', async () => {
  const lease = await Lease.take()
  await lease.pass(1)
  lease.pc.pc.close()
  await vi.advanceTimersByTimeAsync(0)
  expect(vi.getTimerCount()).toBe(0)
  await lease.pass(seconds)
  expect(lease.requests).toEqual([])
})
