import { createInterface } from 'node:readline'
import type { DeviceLink, SwitchNio } from '../../runtime/node/keeper/protocol/protocol.ts'
import { dissect, type Packet } from './frames.ts'
import { lan, type Peer } from './lan.ts'
import { Namespace } from './namespace.ts'

/** A link of a device, as the switch takes it. */
export const deviceNio = (type: DeviceLink['type'], device: string): SwitchNio => ({
  type,
  device,
  suspend: false,
  filters: [],
})

/** The next frame that a guest gets, but for what hosts say to IPv6 groups by themselves. */
export async function nextFrame(guest: Peer): Promise<Buffer> {
  for (;;) {
    const frame = (await guest.holds(1)).shift()
    if (frame !== undefined && frame.readUInt16BE(0) !== 0x3333) return frame
  }
}

/** The next frame with TCP or UDP in it. */
export async function nextPacket(guest: Peer): Promise<Packet> {
  for (;;) {
    const packet = dissect(await nextFrame(guest))
    if (packet !== undefined) return packet
  }
}

/** Joins two guests by hand, as a cable would, and tells of every frame. */
export function cable(one: Peer, other: Peer, passed: (frame: Buffer) => void): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.socket.on('message', (frame: Buffer) => {
      passed(frame)
      to.socket.send(frame)
    })
  }
}

/** A switch whose guest is linked with a veth, with a wire at the other end. */
export async function vethLan(mtu?: number) {
  const host = await Namespace.make()
  const { outside, inside } = await host.veth(mtu)
  const made = await lan('fast', 'a')
  await made.lan.attach('a', deviceNio('ethernet', outside))
  return { ...made, guest: made.guests[0], host, outside, inside }
}

/** Gives a device in a namespace addresses, and neighbours .2 and ::2 that need not be asked for. */
export async function address4and6(host: Namespace, device: string): Promise<void> {
  await host.address(device, '192.0.2.1/24')
  await host.address(device, 'fd00::1/64')
  for (const address of ['192.0.2.2', 'fd00::2']) {
    await host.ip(`neigh add ${address} lladdr 02:00:00:00:00:02 dev ${device}`)
  }
}

/** Sends over TCP from one namespace to another; SHA-256 of what arrived. */
export async function transfer(data: Buffer, from: Namespace, to: Namespace, address: string): Promise<string> {
  const receiver = to.start(
    process.execPath,
    '-e',
    `const hash = require('crypto').createHash('sha256')
    const server = require('net').createServer((socket) => socket.on('data', (chunk) => hash.update(chunk)).on('end', () => {
      console.log(hash.digest('hex'))
      socket.end()
      server.close()
    })).listen(9000, '${address}', () => console.log('ready'))`,
  )
  if (receiver.stdout === null) throw new Error('no pipe')
  const lines = createInterface({ input: receiver.stdout })[Symbol.asyncIterator]()
  await lines.next()
  const sender = from.start(process.execPath, '-e', `process.stdin.pipe(require('net').connect(9000, '${address}'))`)
  sender.stdin?.on('error', () => {}).end(data)
  return String((await lines.next()).value)
}
