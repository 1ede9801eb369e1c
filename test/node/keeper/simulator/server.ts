import { parseIp4, parseMac } from '../../../../runtime/node/keeper/simulator/stack/address.ts'
import { read16, write16 } from '../../../../runtime/node/keeper/simulator/stack/bytes.ts'
import { etherType } from '../../../../runtime/node/keeper/simulator/stack/ethernet.ts'
import { Ip4, protocol } from '../../../../runtime/node/keeper/simulator/stack/ip4.ts'
import { Net } from '../../../../runtime/node/keeper/simulator/stack/net.ts'
import type { Wire } from './wire.ts'

export const ip = (text: string): number => parseIp4(text) ?? 0

/** A host of the test on the wire, with a real stack and something that looks at every datagram it gets. */
export function server(
  wire: Wire,
  address: string,
  answer: (
    from: number,
    fromPort: number,
    toPort: number,
    data: Uint8Array,
  ) => [port: number, data: Uint8Array] | undefined,
): Net {
  const mac = parseMac('02:00:00:00:00:fe')
  const send = wire.join((frame) => {
    net.receive(frame)
    const packet = new Ip4(mac, () => {}).parse(frame)
    if (read16(frame, 12) !== etherType.ip4 || packet?.protocol !== protocol.udp) return
    const { payload, source } = packet
    const reply = answer(source, read16(payload, 0), read16(payload, 2), payload.slice(8, read16(payload, 4)))
    if (reply === undefined) return
    if (source === 0) broadcastUdp(net, reply[0], read16(payload, 0), reply[1])
    else void net.ip4.udp(source, reply[0], read16(payload, 0), reply[1])
  })
  const net = new Net(mac, send)
  net.ip4.config = { address: ip(address), prefix: 24, gateway: 0 }
  // Whatever comes is the test's: nothing is refused.
  net.ip4.isListening = () => true
  return net
}

function broadcastUdp(net: Net, from: number, to: number, data: Uint8Array): void {
  const payload = new Uint8Array(8 + data.length)
  write16(payload, 0, from)
  write16(payload, 2, to)
  write16(payload, 4, payload.length)
  payload.set(data, 8)
  net.ip4.broadcast(net.ip4.config?.address ?? 0, protocol.udp, payload)
}
