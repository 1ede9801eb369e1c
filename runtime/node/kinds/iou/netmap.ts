import { conflict } from '../../../../src/errors/api-error.ts'

export const netmapName = 'NETMAP'
/** Application ids are 1 to this. */
export const maxApplicationId = 511
/** Bays (adapters) and units (ports of one) that a router may have. */
const bays = 16
const units = 4

/** The id under which what carries the frames of a router is known to it. */
export const netmapPeerOf = (applicationId: number): number => applicationId + 512

/** The file by which a router knows who is at the other end of its ports: always its peer, at the same port. */
export function netmapText(applicationId: number): string {
  return Array.from({ length: bays * units }, (_, index) => {
    const port = `${Math.floor(index / units)}/${index % units}`
    return `${netmapPeerOf(applicationId)}:${port}${String(applicationId).padStart(5)}:${port}\n`
  }).join('')
}

/** The lowest application id that is not taken, nor in use otherwise; 409 when all are. */
export function freeApplicationId(taken: Iterable<number>, isInUse: (id: number) => boolean = () => false): number {
  const all = new Set(taken)
  for (let id = 1; id <= maxApplicationId; id++) if (!all.has(id) && !isInUse(id)) return id
  throw conflict(`All ${maxApplicationId} ids that IOU routers of one user may have are taken; delete some router`)
}
