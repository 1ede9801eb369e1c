import { hostname, totalmem } from 'node:os'
import { conflict } from '../../../../src/lib/errors/api-error.ts'

const mb = 2 ** 20

/** The memory of this host, or of its container, MB. */
function hostMemory(): { readonly all: number; readonly free: number } {
  // A container may have less than its host.
  const all = Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / mb)
  return { all, free: Math.floor(process.availableMemory() / mb) }
}

/** A warning when a guest needs more memory than is free, MB; 409 when it needs more than the host has. */
export function checkMemory(ram: number, { all, free } = hostMemory()): string | undefined {
  if (ram > all) throw conflict(`ram: this host has ${all} MB, the node wants ${ram} MB`)
  if (ram <= free) return undefined
  const percent = Math.round((free * 100) / all)
  return `it wants ${ram} MB of memory, and ${free} MB are free (${percent} %) on ${hostname()}`
}
