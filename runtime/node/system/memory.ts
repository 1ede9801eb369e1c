import { hostname, totalmem } from 'node:os'
import { conflict } from '../../../src/errors/api-error.ts'

const mb = 2 ** 20

export interface HostMemory {
  /** MB. */
  readonly all: number
  readonly free: number
}

/** What there is for the guests of this host. */
export function hostMemory(): HostMemory {
  // A container may have less than its host.
  const all = Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / mb)
  return { all, free: Math.floor(process.availableMemory() / mb) }
}

/** What a user should know of a guest with so much memory, MB; 409 when the host does not have it. */
export function checkMemory(ram: number, { all, free }: HostMemory = hostMemory()): string | undefined {
  if (ram > all) throw conflict(`ram: this host has ${all} MB, the node wants ${ram} MB`)
  if (ram <= free) return undefined
  const percent = Math.round((free * 100) / all)
  return `it wants ${ram} MB of memory, and ${free} MB are free (${percent} %) on ${hostname()}`
}
