import type { LabImport, LabPlan } from '../../../src/client/patchbay.ts'

/** A node of an imported file. */
export type GivenNode = LabImport['nodes'][number]
export type NotCreated = NonNullable<LabPlan['cannot_run']>[number]

/** A node of the lab, and what it lacks. */
export interface NodeRow {
  readonly name: string
  /** Its kind in the file, and in the lab. */
  readonly from: string
  readonly kind: string
  /** Why it cannot run; undefined: it can. */
  readonly reason: string | undefined
  /** The images to upload. */
  readonly images: readonly string[]
  /** Where they come from. */
  readonly hint: string | undefined
  /** What was done about it. */
  readonly note: string
}

/** A node after one of its images was uploaded. `left`: the nodes that still lack one, if the service was asked. */
export function withImage(row: NodeRow, image: string, left: readonly NotCreated[] | undefined): NodeRow {
  const still = left?.find(({ name }) => name === row.name)
  const images = still?.images ?? row.images.filter((it) => it !== image)
  if (images.length > 0) return { ...row, images, reason: still?.reason ?? row.reason }
  return { ...row, images, reason: undefined, note: 'image uploaded' }
}

/** The rows of a lab that was made of a lab file, in the order of the file: those that cannot run first. `given`: what the nodes were in the file of another program. */
export function rowsOf(
  nodes: readonly { readonly name: string; readonly kind: string }[],
  cannotRun: readonly NotCreated[],
  given: readonly GivenNode[],
  imagesFrom?: string,
): NodeRow[] {
  const [lacking, origins] = [byName(cannotRun), byName(given)]
  const places = new Map(given.map(({ name }, index) => [name, index]))
  const placeOf = ({ name }: { readonly name: string }) => places.get(name) ?? given.length
  const ordered = nodes.toSorted((a, b) => placeOf(a) - placeOf(b) || a.name.localeCompare(b.name))
  const rows = ordered.map(({ name, kind }): NodeRow => {
    const [lack, origin] = [lacking.get(name), origins.get(name)]
    const isForeign = origin?.cannot_run !== undefined && lack !== undefined
    return {
      name,
      kind,
      from: origin?.from ?? '',
      note: '',
      reason: isForeign ? origin.cannot_run : lack?.reason,
      // No image makes a container a machine.
      images: isForeign ? [] : (lack?.images ?? []),
      hint: isForeign ? undefined : (origin?.hint ?? imagesFrom),
    }
  })
  return [...rows.filter(({ reason }) => reason !== undefined), ...rows.filter(({ reason }) => reason === undefined)]
}

const byName = <T extends { readonly name: string }>(list: readonly T[]): Map<string, T> =>
  new Map(list.map((it) => [it.name, it]))
