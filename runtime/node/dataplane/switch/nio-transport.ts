import { isIPv6 } from 'node:net'
import type { SwitchNio, UdpLink } from '../../keeper/protocol/protocol.ts'
import type { EndSpec } from './core/path.ts'

/** The end of a link; `probes`: whether it can receive probes. */
export function endpointOf(nio: SwitchNio, row: number, probes: boolean): EndSpec {
  if (nio.type !== 'udp') return { type: nio.type, device: nio.device, row }
  const { lport, rhost, rport } = nio
  const local = { address: localAddress(rhost), port: lport }
  return { type: 'udp', local, remote: { address: rhost, port: rport }, probes, row, sends: 'out' }
}

/** The exclusive resource of a link: a UDP port or a device. Several links may share a device that is not a TAP. */
export const resourceOf = (nio: SwitchNio): string =>
  nio.type === 'udp' ? `udp ${nio.lport}` : `${nio.type} ${nio.device}`

/** Whether two links differ only in their impairments. */
export function isSameTransport(a: SwitchNio, b: SwitchNio): boolean {
  const remote = ({ rhost, rport }: UdpLink) => `${rport} ${rhost}`
  if (resourceOf(a) !== resourceOf(b)) return false
  return a.type !== 'udp' || b.type !== 'udp' || remote(a) === remote(b)
}

export const isLoopbackEndpoint = (address: string) => address.startsWith('127.') || address === '::1'

/** The address to bind: loopback for links on this host, otherwise all addresses. */
function localAddress(remote: string): string {
  if (isIPv6(remote)) return remote === '::1' ? '::1' : '::'
  return isLoopbackEndpoint(remote) ? '127.0.0.1' : '0.0.0.0'
}
