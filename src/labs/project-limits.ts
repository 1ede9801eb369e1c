import { isInScope, type ProjectScope } from '../model/access/project-scope.ts'
import type { ProjectRecord } from './lab/document.ts'
import { jsonBytes, type LabLimits, limitReached, mebibyte } from './lab/lab-limits.ts'

/** Most variables and the like of all labs: they are in memory, and lists show them. A token for some projects gets a part of it. MiB. */
const maxHeadsMb = 16
const maxTokenHeadsMb = 4

interface NewHead {
  readonly id: string
  readonly head: ProjectRecord
  /** Of the client, when a lab is made. */
  readonly scope?: ProjectScope | undefined
  readonly limits: LabLimits
}

/** 413 when a lab is one more than there may be, or its new settings are too much together with those of all labs. */
export function requireRoomForProject(
  heads: ReadonlyMap<string, ProjectRecord>,
  { id, head, scope, limits }: NewHead,
): void {
  const before = heads.get(id)
  const growth = filledBytes(head) - (before === undefined ? 0 : filledBytes(before))
  const isNew = before === undefined
  const all = [...heads]
  const own = scope === undefined ? [] : all.filter(([other, { name }]) => isInScope(scope, other, name))
  if (isNew && all.length >= limits.projects)
    throw limitReached(`This service is limited to ${limits.projects} projects: delete one first`, 'projects')
  if (isNew && scope !== undefined && own.length >= limits.token_projects)
    throw limitReached(
      `This token is limited to ${limits.token_projects} projects and has ${own.length}: delete one first`,
      'token_projects',
    )
  if (growth <= 0) return
  const bytes = (list: typeof all) => list.reduce((sum, [, it]) => sum + filledBytes(it), growth)
  for (const [list, max, whose] of [
    [all, maxHeadsMb, 'all projects'],
    [own, maxTokenHeadsMb, 'the projects of this token'],
  ] as const)
    if (bytes(list) > max * mebibyte)
      throw limitReached(
        `The settings of ${whose} are limited to ${max} MiB in total: shorten variables, supplier or kept`,
      )
}

/** Heads are replaced, never changed in place. */
const known = new WeakMap<ProjectRecord, number>()

/** Bytes of JSON of the members without a size of their own (see `requireSmallHead`). */
function filledBytes(head: ProjectRecord): number {
  const { variables, supplier, kept } = head
  const bytes = known.get(head) ?? jsonBytes(variables) + jsonBytes(supplier) + jsonBytes(kept)
  known.set(head, bytes)
  return bytes
}
