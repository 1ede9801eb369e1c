import { isIPv6 } from 'node:net'
import type { SwitchNio, UdpLink } from '../keeper-protocol/protocol.ts'
import type { EndSpec } from './core/path.ts'

/** The end that a link is opened as; whether probes can be among its frames. */
export function endpointOf(nio: SwitchNio, row: number, probes: boolean): EndSpec {
  if (nio.type !== 'udp') return { type: nio.type, device: nio.device, row }
  const { lport, rhost, rport } = nio
  const local = { address: localAddress(rhost), port: lport }
  return { type: 'udp', local, remote: { address: rhost, port: rport }, probes, row, sends: 'out' }
}

/** What only one link can have: a UDP port or a device. Several links may share a device that is not a TAP. */
export function placeOf(nio: SwitchNio): string {
  return nio.type === 'udp' ? `udp ${nio.lport}` : `${nio.type} ${nio.device}`
}

/** Whether two links differ in nothing but what frames meet on them. */
export function isSamePlace(a: SwitchNio, b: SwitchNio): boolean {
  const remote = ({ rhost, rport }: UdpLink) => `${rport} ${rhost}`
  if (placeOf(a) !== placeOf(b)) return false
  return a.type !== 'udp' || b.type !== 'udp' || remote(a) === remote(b)
}

export const isLoopbackEndpoint = (address: string) => address.startsWith('127.') || address === '::1'

/** Links to this host stay on it; only those to other machines listen beyond loopback. */
function localAddress(remote: string): string {
  if (isIPv6(remote)) return remote === '::1' ? '::1' : '::'
  return isLoopbackEndpoint(remote) ? '127.0.0.1' : '0.0.0.0'
}
