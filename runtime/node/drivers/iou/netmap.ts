import { conflict } from '../../../../src/lib/errors/api-error.ts'

export const netmapName = 'NETMAP'
/** Application ids are 1 to 511. */
export const maxApplicationId = 511
/** Bays (adapters) of a router, and units (ports) of a bay. */
const bays = 16
const units = 4

/** The id of the bridge that carries the frames of a router. */
export const netmapPeerOf = (applicationId: number): number => applicationId + 512

/** The NETMAP file: each port of the router is connected to the same port of its bridge. */
export const netmapText = (applicationId: number): string =>
  Array.from({ length: bays * units }, (_, index) => {
    const port = `${Math.floor(index / units)}/${index % units}`
    return `${netmapPeerOf(applicationId)}:${port}${String(applicationId).padStart(5)}:${port}\n`
  }).join('')

/** The lowest application id that is neither taken nor in use; 409 when there is none. */
export function freeApplicationId(taken: Iterable<number>, isInUse: (id: number) => boolean = () => false): number {
  const all = new Set(taken)
  for (let id = 1; id <= maxApplicationId; id++) if (!all.has(id) && !isInUse(id)) return id
  throw conflict(`All ${maxApplicationId} application ids of this user are in use; delete an IOU router first`)
}
