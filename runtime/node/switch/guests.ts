import { KeeperError } from '../keeper-protocol/error.ts'
import type { NetioPort } from '../keeper-protocol/protocol.ts'
import type { EndSpec } from './core/path.ts'

const loopback = '127.0.0.1'

/** The guest's side of a port: its UDP port on this host, a port of an IOU instance, or one of a bridge. */
export type SwitchGuest = number | NetioPort | BridgePortOf
/** `bridge`: its number on the packet path. */
export type BridgePortOf = { readonly bridge: number; readonly bridge_port: number }

const isBridge = (guest: SwitchGuest): guest is BridgePortOf => typeof guest !== 'number' && 'bridge' in guest

/** The port of an IOU instance. */
export const netioOf = (guest: SwitchGuest): NetioPort | null =>
  typeof guest === 'number' || isBridge(guest) ? null : guest

/** Whether frames of the guest have an Ethernet header. */
export const hasEthernet = (guest: SwitchGuest): boolean => netioOf(guest)?.ethernet ?? true

/** The end towards a guest. */
export function guestEnd(guest: SwitchGuest, row: number): EndSpec {
  if (typeof guest !== 'number' && isBridge(guest))
    return { type: 'bridge', bridge: guest.bridge, port: guest.bridge_port, row }
  if (typeof guest !== 'number') return { type: 'netio', applicationId: guest.application_id, port: guest.port, row }
  return {
    type: 'udp',
    local: { address: loopback, port: 0 },
    remote: { address: loopback, port: guest },
    probes: false,
    row,
    sends: 'in',
  }
}

export function isSameGuest(a: SwitchGuest, b: SwitchGuest): boolean {
  if (typeof a === 'number' || typeof b === 'number') return a === b
  if (isBridge(a) || isBridge(b))
    return isBridge(a) && isBridge(b) && a.bridge === b.bridge && a.bridge_port === b.bridge_port
  return a.application_id === b.application_id && a.port === b.port && a.ethernet === b.ethernet
}

/** `bad_request` for an invalid port of an IOU instance. */
export function requireGuest(guest: SwitchGuest): void {
  if (typeof guest === 'number' || isBridge(guest)) return
  const { application_id, port } = guest
  const isWithin = (value: number, least: number, most: number) =>
    Number.isInteger(value) && value >= least && value <= most
  if (!isWithin(application_id, 1, 511)) throw new KeeperError('bad_request', `${application_id} is no application id`)
  if (!isWithin(port, 0, 255)) throw new KeeperError('bad_request', `${port} is no port of an IOU instance`)
}
