import type { Datagram, Segment } from './transport.ts'

/** A received packet for which a command may wait. Addresses are texts, of either family. */
export type NetEvent =
  | {
      readonly type: 'echo'
      readonly from: string
      readonly id: number
      readonly sequence: number
      readonly ttl: number
      readonly bytes: number
    }
  | {
      /** An ICMP error about a packet of this pc. */
      readonly type: 'error'
      readonly from: string
      readonly icmpType: number
      readonly code: number
      readonly ttl: number
      /** Identifier of an echo request, or source port; and its sequence number, or destination port. */
      readonly id: number
      readonly sequence: number
    }
  | { readonly type: 'udp'; readonly from: string; readonly ttl: number; readonly datagram: Datagram }
  | { readonly type: 'tcp'; readonly from: string; readonly ttl: number; readonly segment: Segment }

export type Listener = (event: NetEvent) => void

/** Why a packet could not be sent. */
export type SendRefusal = 'no address' | 'no gateway' | 'not reachable' | 'too big'
export type SendResult = 'sent' | SendRefusal

export interface SendOptions {
  readonly ttl?: number
  readonly dontFragment?: boolean
}

/** The port of DHCP clients (RFC 2131). */
export const dhcpClientPort = 68
/** The echo port (RFC 862). */
export const echoPort = 7
