import { readFileSync } from 'node:fs'
import type { DeviceLink } from '../../keeper/protocol/protocol.ts'

/** The interface index, which differs for a later device of the same name; null: no such device. */
export function deviceIndex(device: string): number | null {
  const text = read(device, 'ifindex')
  return text === undefined ? null : Number(text)
}

/** Whether the device of a link no longer has its original index, is down or has no carrier. */
export function isDeviceLost({ type, device }: DeviceLink, index: number | null): boolean {
  // A TAP that was moved into another namespace still works.
  if (deviceIndex(device) !== index) return type === 'ethernet'
  // operstate is "unknown" for TAP and some other devices that work.
  return /^(down|lowerlayerdown|notpresent)$/.test(read(device, 'operstate') ?? '')
}

function read(device: string, attribute: string): string | undefined {
  try {
    return readFileSync(`/sys/class/net/${device}/${attribute}`, 'utf8').trim()
  } catch {
    return undefined
  }
}
