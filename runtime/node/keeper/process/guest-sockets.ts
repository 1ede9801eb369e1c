import { closeSync } from 'node:fs'
import { Sockets } from '../../dataplane/fast/sockets.ts'
import { loadLibc } from '../../os/system/libc.ts'
import type { ProcessSpec } from '../protocol/protocol.ts'

const address = '127.0.0.1'
let sockets: Sockets | undefined

/**
 * Opens the guest's sockets of private pairs. The kernel discards what anybody but the switch sends to them (connect(2)). Their
 * buffers have the size that the sockets of an emulator have. Throws when a port is taken; then none is left open.
 */
export function openGuestSockets(pairs: NonNullable<ProcessSpec['sockets']>): number[] {
  const opened: number[] = []
  if (pairs.length === 0) return opened
  sockets ??= new Sockets(loadLibc(), false)
  try {
    for (const { guest_port, switch_port } of pairs) {
      const ends = { local: { address, port: guest_port }, remote: { address, port: switch_port } }
      opened.push(sockets.udp(ends, 'default').fd)
    }
    return opened
  } catch (error) {
    for (const descriptor of opened) closeSync(descriptor)
    throw error
  }
}
