import type { Mac } from './address.ts'
import { write16 } from './bytes.ts'

export const etherType = { ip4: 0x0800, arp: 0x0806, ip6: 0x86dd } as const
export const ethernetHead = 14
/** Minimum frame length without the frame check sequence (IEEE 802.3). */
const shortest = 60

/** A new frame with its header; the caller fills in the payload. */
export function newFrame(to: Mac, from: Mac, type: number, payload: number): Uint8Array {
  const frame = new Uint8Array(Math.max(shortest, ethernetHead + payload))
  frame.set(to, 0)
  frame.set(from, 6)
  write16(frame, 12, type)
  return frame
}
