import { type Static, Type } from '@sinclair/typebox'
import { PortNumber } from './common.ts'

/** A UDP tunnel: one Ethernet frame a datagram, no extra header. */
export type UdpNio = Static<typeof UdpNio>
export const UdpNio = Type.Object(
  {
    type: Type.Literal('nio_udp'),
    lport: Type.Integer({ ...PortNumber, description: 'Local UDP port; reserved while attached' }),
    rhost: Type.String({ minLength: 1, maxLength: 253, description: 'Address or name of the other end' }),
    rport: Type.Integer({ ...PortNumber, description: 'UDP port of the other end' }),
    suspend: Type.Optional(
      Type.Boolean({ default: false, description: 'true: the link is down, frames are dropped both ways' }),
    ),
    filters: Type.Optional(
      Type.Object({}, { additionalProperties: false, description: 'Reserved for impairment; must be empty' }),
    ),
  },
  { $id: 'UdpNio', additionalProperties: false, description: 'A UDP tunnel' },
)

/** The NIO types of the protocol. A kind says which of them it takes (`NodeKind.nioTypes`). */
export const nioTypes = [
  'nio_udp',
  'nio_generic_ethernet',
  'nio_ethernet',
  'nio_linux_ethernet',
  'nio_nat',
  'nio_tap',
  'nio_unix',
  'nio_vde',
  'nio_vmnet',
  'nio_null',
] as const

/** Any NIO this version can attach. */
export type Nio = Static<typeof Nio>
export const Nio = UdpNio
