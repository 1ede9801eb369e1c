import type { ProjectRequest } from '../../fleet/gateway/forward-request.ts'
import { readBytes } from '../../lib/http/body.ts'
import { validParams } from '../path-params.ts'
import { matchOf, type RequestContext, type RequestStep, targetOf } from '../request-context.ts'
import { agentOf } from './run-handler.ts'

/** A gateway forwards a request about a project to the compute of the project. */
export const forwardToCompute: RequestStep = async (context, next) => {
  const agent = agentOf(context)
  const { endpoint } = matchOf(context)
  if (!('forwardRequest' in agent) || endpoint.owner !== 'project') return next()
  const request = projectRequestOf(context)
  const takesJson = endpoint.body !== undefined || endpoint.bodyKind === 'ignored'
  const body = takesJson ? await readBytes(context.request, context.app.options.jsonBytes) : undefined
  const forwarded = agent.forwardRequest({ ...request, body })
  return forwarded === undefined ? next() : forwarded
}

/**
 * A gateway looks at the parameters of the path and at the size of a JSON body. All else the compute looks at, which may be of a newer
 * version.
 */
function projectRequestOf(context: RequestContext): Omit<ProjectRequest, 'body'> {
  const { request, upgrade } = context
  const { endpoint, params } = matchOf(context)
  const { project_id, ...ids } = validParams(endpoint, params)
  const part = ids.node_id ?? ids.vm_id ?? ids.link_id ?? partIn(params.action)
  return {
    projectId: String(project_id),
    part: part === undefined ? undefined : String(part).toLowerCase(),
    request,
    path: targetOf(context),
    upgrade: endpoint.websocket === true ? upgrade : undefined,
    endsProject: endpoint.endsProject === true,
  }
}

/** The node in a path that only a newer compute has, such as `kind/nodes/{node_id}/new`. */
const partIn = (action = ''): string | undefined => /^[^/]+\/(?:nodes|vms)\/([^/]+)/.exec(action)?.[1]
