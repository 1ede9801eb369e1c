import { Type } from '@sinclair/typebox'
import { ignore } from '../../async/ignore.ts'
import type { Caller } from '../../auth/caller.ts'
import { agentOf } from '../../client/agent-of.ts'
import { notFound } from '../../errors/api-error.ts'
import type { Fleet } from '../../fleet/fleet.ts'
import { ask } from '../../fleet/forward.ts'
import { noCompute } from '../../gateway/fan-out.ts'
import { type Context, type Endpoint, endpoint, ok } from '../../http/endpoint.ts'
import type { RelayedAnswer } from '../../http/relayed-answer.ts'
import { IdlePc, IdlePcQuestion, measurementErrors } from '../../kinds/dynamips.ts'
import { applianceId, localId } from '../../model/compute.ts'

const params = Type.Object({
  compute_id: Type.String({
    minLength: 1,
    description: 'Id of a compute; local: this one, or one of a gateway that has the image',
  }),
})
/** The name of the projects that are made for a question, as clients know it. */
const name = 'AUTOIDLEPC'

/** The value that keeps routers of an image from taking a whole processor, found by a compute. */
export const autoIdlePc: Endpoint = endpoint({
  method: 'POST',
  path: '/v2/computes/{compute_id}/auto_idlepc',
  owner: 'self',
  tag: 'v2 computes',
  summary: 'Find the idle PC of an image',
  description:
    'Takes minutes, and ends with the request. The image runs in a temporary project, which is always removed.',
  params,
  body: IdlePcQuestion,
  replies: { 200: { description: 'The value', schema: IdlePc } },
  errors: {
    404: 'There is no such compute',
    ...measurementErrors,
    409: `${measurementErrors[409]}; or the image is missing (its name is then in \`image\`)`,
    507: 'The disk is nearly full',
  },
  async handle({ params, body, request }, context) {
    const { host, fleet, caller } = context
    if (params.compute_id === applianceId) await context.appliance?.ready(request.signal)
    if (params.compute_id !== localId) {
      context.answered(params.compute_id)
      return elsewhere(params.compute_id, { body, caller, signal: request.signal }, fleet)
    }
    if (host === undefined) {
      const there = await holderOf(body.image, context)
      context.answered(there)
      return elsewhere(there, { body, caller, signal: request.signal }, fleet)
    }
    const { project } = await host.projects.create({ name, temporary: true })
    const { project_id } = project
    try {
      const input = { name, ...body }
      const { node } = await host.nodes.create(project_id, 'dynamips', input, { existing: 'refuse' })
      const ref = { project_id, kind: 'dynamips' as const, node_id: node.node_id }
      return ok(await host.nodes.action(ref, 'autoIdlePc', {}, request.signal))
    } finally {
      await host.projects
        .remove(project_id)
        .catch(ignore('it may be deleted already, and else goes when the service starts again'))
    }
  },
})

/** The first compute of a gateway that is connected and has the image, else the first that is connected: it says what is missing. */
async function holderOf(image: string, { fleet, caller }: Context): Promise<string> {
  let first: string | undefined
  for (const { compute_id, connected } of (await fleet?.list()) ?? []) {
    if (fleet === undefined || !connected) continue
    first ??= compute_id
    const found = await agentOf(fleet, compute_id, { caller })
      .images.read('dynamips', image, { range: { first: 0, last: 0 } })
      .catch(() => undefined)
    if (found === undefined) continue
    found.content.cancel().catch(ignore('only whether it is there was asked'))
    return compute_id
  }
  if (first === undefined) throw noCompute()
  return first
}

/** Another compute is asked the same of itself. */
function elsewhere(
  id: string,
  question: { body: IdlePcQuestion; caller: Caller; signal: AbortSignal },
  fleet: Fleet | undefined,
): Promise<RelayedAnswer> {
  if (fleet === undefined) throw notFound(`compute_id: there is no compute ${JSON.stringify(id.slice(0, 100))}`)
  return ask(fleet, id, { path: `/v2/computes/${localId}/auto_idlepc`, ...question })
}
