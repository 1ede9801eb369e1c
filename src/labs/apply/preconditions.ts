import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import type { ProjectRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import type { PlanOptions } from '../plan/types.ts'

/** The entity tag of a revision. */
export const revisionTag = ({ revision }: Pick<ProjectRecord, 'revision'>): string => `"${revision}"`

/** 412 unless `If-Match` is absent or names the present revision. */
export function requireRevision(lab: Lab, ifMatch: string | null): void {
  if (ifMatch === null) return
  const present = revisionTag(lab.document.project)
  const wanted = ifMatch.split(',').map((tag) => tag.trim())
  if (wanted.includes(present) || wanted.includes('*')) return
  throw new ApiError(412, `If-Match: the project was changed meanwhile; its ETag is ${present} now`)
}

/** 409 unless this user made the project from a lab file, or takes it over. */
export function requireOwn(lab: Lab, by: string, { take_over }: Pick<PlanOptions, 'take_over'>): void {
  const { name, lastApplied } = lab.document.project
  if (take_over === true || lastApplied?.by === by) return
  const why =
    lastApplied === undefined
      ? 'was not made from a lab file'
      : `was made from a lab file by ${JSON.stringify(lastApplied.by)}`
  throw conflict(
    `A project ${name} already exists and ${why}: give the lab another name, or take over the project (take_over)`,
    { code: 'made-otherwise' },
  )
}
