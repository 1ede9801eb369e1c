import { totalmem } from 'node:os'
import { conflict } from '../../../src/errors.ts'

const mb = 2 ** 20

/** 409 for more memory (MB) than the host has; `warn` is told of more than is free. */
export function checkMemory(ram: number, warn: (message: string) => void): void {
  // A container may have less than its host.
  const all = Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / mb)
  const free = Math.floor(process.availableMemory() / mb)
  if (ram > all) throw conflict(`ram: this host has ${all} MB, the node wants ${ram} MB`)
  if (ram > free) warn(`it wants ${ram} MB of memory, and ${free} MB are free (${Math.round((free * 100) / all)} %)`)
}
