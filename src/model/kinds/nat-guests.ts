import { type Static, Type } from '@sinclair/typebox'
import { PortNumber } from '../schema/fields.ts'

/** Most ports of a nat. */
export const maxPorts = 256
/** Most ports of the host that one nat forwards. */
export const maxForwards = 256

/** The address of the host at which a forwarded port is open, where none is given. */
export const defaultHostAddress = '127.0.0.1'

const address = (description: string) => Type.Optional(Type.String({ minLength: 2, maxLength: 45, description }))

/** A port of the host that leads to a guest. */
export type PortForward = Static<typeof PortForward>
export const PortForward = Type.Object(
  {
    protocol: Type.Union([Type.Literal('tcp'), Type.Literal('udp')]),
    host_port: Type.Integer({ ...PortNumber, description: 'Port of the host' }),
    host_address: address(
      `Address of the host to listen at. Default: ${defaultHostAddress}; outside local mode only loopback`,
    ),
    guest_port: Type.Integer({ ...PortNumber, description: 'Port of the guest' }),
    guest_address: address('Address of the guest. Default: the first one that DHCP gives'),
  },
  { additionalProperties: false, description: 'A port of the host that leads to a guest' },
)

type HostPort = Pick<PortForward, 'protocol' | 'host_port' | 'host_address'>

/** Whether two forwards cannot have their ports of the host at once. */
export function forwardsCollide(one: HostPort, other: HostPort): boolean {
  if (one.protocol !== other.protocol || one.host_port !== other.host_port) return false
  const [a, b] = [one.host_address ?? defaultHostAddress, other.host_address ?? defaultHostAddress]
  return a === b || [a, b].some((it) => it === '0.0.0.0' || it === '::')
}

/** The guest at a port: its address by DHCP, and its name. */
export type NatGuest = Static<typeof NatGuest>
export const NatGuest = Type.Object(
  {
    port_number: Type.Integer({ minimum: 0, maximum: maxPorts - 1, description: 'Its port' }),
    name: Type.String({
      pattern: '^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$',
      expects: 'the name of a host: letters, digits and -',
      description: 'Its name, which the resolver knows',
    }),
    address: Type.String({
      pattern: '^\\d{1,3}(\\.\\d{1,3}){3}$',
      expects: 'an IPv4 address',
      description: 'Its address, which DHCP gives it',
    }),
  },
  { additionalProperties: false, description: 'The guest at a port' },
)
