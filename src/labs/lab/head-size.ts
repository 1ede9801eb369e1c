import { badRequest } from '../../lib/errors/api-error.ts'
import type { LabProjectCreate } from '../../model/lab/project.ts'

/** The heads of all projects are in the memory of one process, and lists show them whole. */
const maxCharacters = 64 * 1024

type Filled = Pick<LabProjectCreate, 'variables' | 'supplier' | 'kept'>

/** 400 for a project with too much in the members that have no size of their own. `before`: one that had more already may keep it. */
export function requireSmallHead(project: Filled, before: Filled = {}): void {
  const characters = sizeOf(project)
  if (characters <= maxCharacters || characters <= sizeOf(before)) return
  throw badRequest(
    `variables, supplier and kept: expected at most ${maxCharacters} characters of JSON in total, got ${characters}`,
  )
}

const sizeOf = ({ variables, supplier, kept }: Filled): number => JSON.stringify([variables, supplier, kept]).length
