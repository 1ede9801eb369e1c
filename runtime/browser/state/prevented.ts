import type { Diagnosis } from '../../../src/client/patchbay.ts'

/** A finding of the doctor. */
export type Finding = Diagnosis['checks'][number]

/** What is missing, by the kinds that no machine can run without it. */
export type Prevented = ReadonlyMap<string, readonly Finding[]>

/** What the doctor says of a missing thing, in one line; the fix is said apart. */
export const shortFinding = ({ name, found }: Finding): string => `${name}: ${found.split('; ')[0]}`

/** The kinds that each of these machines cannot run, with what the first machine lacks: one of it is enough. */
export function preventedIn(found: readonly Diagnosis[]): Prevented {
  const lacking = found.map(
    ({ checks }) =>
      (kind: string) =>
        checks.filter((it) => it.prevents?.includes(kind)),
  )
  const kinds = new Set(found[0]?.checks.flatMap(({ prevents = [] }) => prevents))
  return new Map(
    [...kinds]
      .filter((kind) => lacking.every((lacks) => lacks(kind).length > 0))
      .map((kind) => [kind, lacking[0]?.(kind) ?? []]),
  )
}
