import { Type } from '@sinclair/typebox'
import type { Caller } from '../../auth/caller.ts'
import { notFound } from '../../errors.ts'
import type { Fleet } from '../../fleet/fleet.ts'
import { ask } from '../../fleet/forward.ts'
import { type Endpoint, endpoint, ok } from '../../http/endpoint.ts'
import { applianceId, localId } from '../../model/compute.ts'
import { IdlePc, IdlePcQuestion } from '../../model/dynamips.ts'
import { measuring } from '../idle-pc.ts'

const params = Type.Object({
  compute_id: Type.String({ minLength: 1, description: 'Id of a compute; local: this one' }),
})
/** The name of the projects that are made for a question, as clients know it. */
const name = 'AUTOIDLEPC'

/** The value that keeps routers of an image from taking a whole processor, found by a compute. */
export const autoIdlePc: Endpoint = endpoint({
  method: 'POST',
  path: '/v2/computes/{compute_id}/auto_idlepc',
  tag: 'v2 computes',
  summary: 'Find the idle PC of an image',
  description:
    'Takes minutes, and ends with the request. The image runs in a temporary project, which is always removed.',
  params,
  body: IdlePcQuestion,
  replies: { 200: { description: 'The value', schema: IdlePc } },
  errors: {
    404: 'There is no such compute',
    ...measuring,
    409: `${measuring[409]}; or the image is missing (its name is then in \`image\`)`,
    507: 'The disk is nearly full',
  },
  async handle({ params, body, request }, context) {
    const { agent, fleet, caller } = context
    if (params.compute_id === applianceId) await context.appliance?.ready(request.signal)
    if (params.compute_id !== localId) {
      context.answered(params.compute_id)
      return elsewhere(params.compute_id, { body, caller, signal: request.signal }, fleet)
    }
    const { project } = await agent.projects.create({ name, temporary: true })
    const { project_id } = project
    try {
      const input = { name, ...body }
      const { node } = await agent.nodes.create(project_id, 'dynamips', input, { existing: 'refuse' })
      const ref = { project_id, kind: 'dynamips' as const, node_id: node.node_id }
      return ok({ idlepc: await agent.dynamips.autoIdlePc(ref, request.signal) })
    } finally {
      // Somebody may have deleted it; and one that cannot be goes when the service starts again.
      await agent.projects.remove(project_id).catch(() => {})
    }
  },
})

/** Another compute is asked the same of itself. */
function elsewhere(
  id: string,
  question: { body: IdlePcQuestion; caller: Caller; signal: AbortSignal },
  fleet: Fleet | undefined,
): Promise<Response> {
  if (fleet === undefined) throw notFound(`compute_id: there is no compute ${JSON.stringify(id.slice(0, 100))}`)
  return ask(fleet, id, { path: `/v2/computes/${localId}/auto_idlepc`, ...question })
}
