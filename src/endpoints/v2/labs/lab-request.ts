import { Type } from '@sinclair/typebox'
import type { LabCatalog } from '../../../labs/catalog.ts'
import type { ComputeAgents } from '../../../labs/computes/agents.ts'
import type { ProjectRecord } from '../../../labs/lab/document.ts'
import type { Labs } from '../../../labs/service.ts'
import { forbidden, notFound } from '../../../lib/errors/api-error.ts'
import { ownsLabs } from '../../../model/access/identity.ts'
import { applyOptions } from '../../../model/lab/topology.ts'
import { oneOf } from '../../../model/schema/fields.ts'
import type { Context } from '../../../server/http/endpoint.ts'

/** A path parameter that is not a UUID is a name. */
const idOrName = (what: string) =>
  Type.String({ minLength: 1, maxLength: 255, description: `Id of the ${what}, or its name (case-insensitive)` })

export const projectParam = { project_id: idOrName('project') }
export const nodeParams = { ...projectParam, node_id: idOrName('node') }
/** The query of a request that reads a file of another user. */
export const trustQuery = {
  trust: Type.Optional(
    oneOf(['true', 'false'], { default: 'false', description: String(applyOptions.trust.description) }),
  ),
}
export const notTrusted =
  'The file would run programs or open files of the host, and is not trusted: `untrusted` lists them'
export const base = '/v2/projects'
export const noSuchProject = 'There is no such project, or it is closed'

/** The labs that run in this process, and the agents of computes on behalf of the caller. 404 where none do. */
export function labsOf(context: Context): { labs: Labs; agentFor: ComputeAgents } {
  const { labs } = context
  if (labs === undefined) throw noLabs()
  return { labs, agentFor: agentsOf(labs, context) }
}

/** All labs of a service. 404 where it has none. */
export function catalogOf({ catalog }: Context): LabCatalog {
  if (catalog === undefined) throw noLabs()
  return catalog
}

/** The agents of computes on behalf of the caller, with the limits of its token. */
export function agentsOf({ computes }: LabCatalog, { caller, identity, noteCompute }: Context): ComputeAgents {
  const agentFor = (computeId: string) => {
    noteCompute(computeId)
    return computes.agent(computeId, caller)
  }
  return identity.limits === undefined ? agentFor : Object.assign(agentFor, { limits: identity.limits })
}

/** 403 for a student who would delete or rename the lab of a class, or delete the snapshot to which it is reset. */
export function requireNotHandedOut(project: Pick<ProjectRecord, 'class'> | undefined, { identity }: Context): void {
  if (project?.class === undefined || ownsLabs(identity)) return
  throw forbidden(
    `This is of the class ${project.class.name}: only who may change all projects can delete or rename it`,
  )
}

const noLabs = () => notFound('This service has no labs', { code: 'not-supported' })
