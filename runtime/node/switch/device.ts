import { readFileSync } from 'node:fs'
import type { DeviceLink } from '../keeper-protocol/protocol.ts'

/** What tells a network device of this host from a later one of the same name; null: there is none. */
export function deviceIndex(device: string): number | null {
  const text = read(device, 'ifindex')
  return text === undefined ? null : Number(text)
}

/** Whether the device of a link that had that index when it was opened is gone, down or without carrier. */
export function isDeviceLost({ type, device }: DeviceLink, index: number | null): boolean {
  // A TAP that was moved into another namespace is gone from here, and works.
  if (deviceIndex(device) !== index) return type === 'ethernet'
  // TAP devices and some others say "unknown" while they work.
  return /^(down|lowerlayerdown|notpresent)$/.test(read(device, 'operstate') ?? '')
}

function read(device: string, attribute: string): string | undefined {
  try {
    return readFileSync(`/sys/class/net/${device}/${attribute}`, 'utf8').trim()
  } catch {
    return undefined
  }
}
