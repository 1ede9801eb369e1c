import { isDeepStrictEqual } from 'node:util'
import { KeeperError } from '../../keeper/protocol/error.ts'
import type { NetioPort } from '../../keeper/protocol/protocol.ts'
import type { EndSpec } from './core/path.ts'

const loopback = '127.0.0.1'

/**
 * The guest's side of a port: its UDP port on this host, also of a serial line, a port of an IOU instance, one of a bridge, or a TAP
 * device, which is there while the guest runs.
 */
export type SwitchGuest = number | SerialPort | NetioPort | BridgePortOf | TapGuest
/** A UDP port whose frames have no Ethernet header. */
export type SerialPort = { readonly serial_port: number }
/** `bridge`: its number on the packet path. */
export type BridgePortOf = { readonly bridge: number; readonly bridge_port: number }

export type TapGuest = { readonly tap: true }

export const isTap = (guest: SwitchGuest): guest is TapGuest => typeof guest !== 'number' && 'tap' in guest
const isBridge = (guest: SwitchGuest): guest is BridgePortOf => typeof guest !== 'number' && 'bridge' in guest
const isSerial = (guest: SwitchGuest): guest is SerialPort => typeof guest !== 'number' && 'serial_port' in guest

/** The UDP port of the guest; 0 for another one. */
export const udpPortOf = (guest: SwitchGuest): number =>
  typeof guest === 'number' ? guest : isSerial(guest) ? guest.serial_port : 0

/** The port of an IOU instance. */
export const netioOf = (guest: SwitchGuest): NetioPort | null =>
  typeof guest === 'number' || isBridge(guest) || isSerial(guest) || isTap(guest) ? null : guest

/** Whether frames of the guest have an Ethernet header. */
export const hasEthernet = (guest: SwitchGuest): boolean => netioOf(guest)?.ethernet ?? !isSerial(guest)

/** The end towards a guest. */
export function guestEnd(guest: Exclude<SwitchGuest, TapGuest>, row: number): EndSpec {
  const netio = netioOf(guest)
  if (netio !== null) return { type: 'netio', applicationId: netio.application_id, port: netio.port, row }
  if (isBridge(guest)) return { type: 'bridge', bridge: guest.bridge, port: guest.bridge_port, row }
  return {
    type: 'udp',
    local: { address: loopback, port: 0 },
    remote: { address: loopback, port: udpPortOf(guest) },
    probes: false,
    row,
    sends: 'in',
  }
}

export const isSameGuest = (a: SwitchGuest, b: SwitchGuest): boolean => isDeepStrictEqual(a, b)

/** `bad_request` for an invalid port of an IOU instance. */
export function requireGuest(guest: SwitchGuest): void {
  const netio = netioOf(guest)
  if (netio === null) return
  const { application_id, port } = netio
  const isWithin = (value: number, least: number, most: number) =>
    Number.isInteger(value) && value >= least && value <= most
  if (!isWithin(application_id, 1, 511))
    throw new KeeperError('bad_request', `${application_id} is not an application id`)
  if (!isWithin(port, 0, 255)) throw new KeeperError('bad_request', `${port} is not a port of an IOU instance`)
}
