import { Type } from '@sinclair/typebox'
import { ask } from '../../../fleet/forward/forward.ts'
import { fleetAgent } from '../../../fleet/members/fleet-agent.ts'
import { noCompute } from '../../../fleet/members/member-errors.ts'
import type { Fleet } from '../../../fleet/pool/fleet.ts'
import { ignore } from '../../../lib/async/ignore.ts'
import { notFound } from '../../../lib/errors/api-error.ts'
import type { RelayedAnswer } from '../../../lib/http/relayed-answer.ts'
import type { Caller } from '../../../model/access/caller.ts'
import { applianceId, localId } from '../../../model/compute.ts'
import type { ImageKindName } from '../../../model/image.ts'
import { kinds } from '../../../model/kinds/index.ts'
import type { ImageAction, KindDescriptor } from '../../../model/kinds/kind.ts'
import type { NodeCreate } from '../../../model/kinds/node.ts'
import { type Context, type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'

const params = Type.Object({
  compute_id: Type.String({
    minLength: 1,
    description: 'Id of a compute; local: this one, or one of a gateway that has the image',
  }),
})

/** The actions of kinds on an image: a compute runs the image in a temporary project. */
export const imageActionEndpoints: readonly Endpoint[] = kinds.flatMap(
  ({ name: kind, imageActions = {} }: KindDescriptor) =>
    Object.entries(imageActions).map(([name, action]) => endpointOf(kind as ImageKindName, name, action)),
)

function endpointOf(kind: ImageKindName, action: string, declaration: ImageAction): Endpoint {
  const { path, summary, description, input, output, answer, errors, projectName: name } = declaration
  return endpoint({
    method: 'POST',
    path: `/v2/computes/{compute_id}/${path}`,
    owner: 'self',
    tag: 'v2 computes',
    summary,
    params,
    isUncounted: true,
    description: `${description} The image runs in a temporary project, which is always removed.`,
    body: input,
    replies: { 200: { description: answer.description, schema: output } },
    errors: { 404: 'There is no such compute', ...errors, 507: 'The disk is nearly full' },
    async handle({ params, body, request }, context) {
      const { host, fleet, caller } = context
      const forward = (compute: string) => {
        context.noteCompute(compute)
        return forwardTo(compute, fleet, { path, body, caller, signal: request.signal })
      }
      if (params.compute_id === applianceId) await context.appliance?.ready(request.signal)
      if (params.compute_id !== localId) return forward(params.compute_id)
      if (host === undefined) return forward(await computeWith(kind, (body as { image: string }).image, context))
      const { project } = await host.projects.create({ name, temporary: true })
      const { project_id } = project
      try {
        const input = { name, ...body } as NodeCreate
        const { node } = await host.nodes.create(project_id, kind, input, { existing: 'refuse' })
        const ref = { project_id, kind, node_id: node.node_id }
        return ok(await host.nodes.action(ref, action, {}, request.signal))
      } finally {
        await host.projects
          .remove(project_id)
          .catch(ignore('the project is deleted already, or will be when the service starts again'))
      }
    },
  })
}

/** The first connected compute of a gateway that has the image, else the first connected one, whose error names the image. */
async function computeWith(kind: ImageKindName, image: string, { fleet, caller }: Context): Promise<string> {
  let first: string | undefined
  for (const { compute_id, connected } of (await fleet?.list()) ?? []) {
    if (fleet === undefined || !connected) continue
    first ??= compute_id
    const stored = await fleetAgent(fleet, compute_id, { caller })
      .images.read(kind, image, { range: { first: 0, last: 0 } })
      .catch(() => undefined)
    if (stored === undefined) continue
    stored.content.cancel().catch(ignore('the request only checked that the image exists'))
    return compute_id
  }
  if (first === undefined) throw noCompute()
  return first
}

/** Sends the same request to another compute, which is `local` to itself. */
function forwardTo(
  id: string,
  fleet: Fleet | undefined,
  { path, ...rest }: { path: string; body: object; caller: Caller; signal: AbortSignal },
): Promise<RelayedAnswer> {
  if (fleet === undefined) throw notFound(`compute_id: there is no compute ${JSON.stringify(id.slice(0, 100))}`)
  return ask(fleet, id, { path: `/v2/computes/${localId}/${path}`, ...rest })
}
