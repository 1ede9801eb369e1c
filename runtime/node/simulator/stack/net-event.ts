import type { Datagram, Segment } from './transport.ts'

/** Something that came in and may be what a command waits for. Addresses are texts, of either family. */
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
      /** An ICMP error about something that we sent. */
      readonly type: 'error'
      readonly from: string
      readonly icmpType: number
      readonly code: number
      readonly ttl: number
      /** Identifier of an echo or source port, and its sequence number or destination port. */
      readonly id: number
      readonly sequence: number
    }
  | { readonly type: 'udp'; readonly from: string; readonly ttl: number; readonly datagram: Datagram }
  | { readonly type: 'tcp'; readonly from: string; readonly ttl: number; readonly segment: Segment }

export type Listener = (event: NetEvent) => void

/** Why something could not be sent. */
export type SendRefusal = 'no address' | 'no gateway' | 'not reachable' | 'too big'
export type SendResult = 'sent' | SendRefusal

export interface SendOptions {
  readonly ttl?: number
  readonly dontFragment?: boolean
}

/** Ports on which a host echoes what it gets (RFC 862). */
export const echoPort = 7
