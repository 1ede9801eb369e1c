import type { TObject } from '@sinclair/typebox'
import type { LocalHostAgent } from '../../host-agent.ts'
import type { Action, ApiVersion } from '../../model/kinds/kind.ts'
import { validate } from '../../model/validation/validate.ts'
import { type Endpoint, endpoint } from '../../server/http/endpoint.ts'
import { noSuchNode } from '../../server/http/params.ts'
import type { NodeForm } from './node-form.ts'

/** The parts of an action's endpoint that the action does not declare. */
interface EndpointBase {
  readonly version: ApiVersion
  readonly path: string
  readonly tag: string
  readonly params?: TObject
  readonly errors?: Readonly<Record<number, string>>
  run(agent: LocalHostAgent, params: unknown, name: string, input: unknown, signal: AbortSignal): Promise<unknown>
}

/** The actions of a kind on its nodes. */
export function actionEndpoints({ version, path, tag, params, ref, descriptor }: NodeForm): readonly Endpoint[] {
  return endpointsOf(descriptor.actions, {
    version,
    path,
    tag,
    params,
    errors: { 404: noSuchNode },
    run: (agent, params, name, input, signal) => agent.nodes.action(ref(params), name, input, signal),
  })
}

/** The actions of a kind on computes. */
export function computeActionEndpoints({ version, kind, tag, descriptor }: NodeForm): readonly Endpoint[] {
  return endpointsOf(descriptor.computeActions, {
    version,
    tag,
    path: version === 'v1' ? `/v1/${kind}` : `/v2/compute/${kind}`,
    run: (agent, _, name, input, signal) => agent.host.action(kind, name, input, signal),
  })
}

function endpointsOf(actions: Readonly<Record<string, Action>> = {}, base: EndpointBase): readonly Endpoint[] {
  return Object.entries(actions).flatMap(([name, action]) => {
    const { versions = ['v1', 'v2'], v1Form } = action
    if (!versions.includes(base.version)) return []
    const main = endpointOf(base, name, action)
    if (v1Form === undefined || base.version !== 'v1') return [main]
    const { path, summary, description, schema, toView: shown } = v1Form
    return [main, endpointOf(base, name, { ...action, path, summary, output: schema, answer: { description } }, shown)]
  })
}

function endpointOf(
  { path, tag, params, errors, run }: EndpointBase,
  name: string,
  action: Action,
  shown = (output: unknown) => output,
): Endpoint {
  const { method, group, input, query, output, answer, role, description } = action
  const { status = 200 } = answer
  return endpoint({
    method,
    path: `${path}/${action.path}`,
    ...(role !== undefined && { role }),
    tag: group === undefined ? tag : tag.replace(/\w+$/, group),
    summary: action.summary,
    ...(description !== undefined && { description }),
    ...(params !== undefined && { params }),
    ...(query !== undefined && { query }),
    ...(input !== undefined ? { body: input } : method === 'POST' && { bodyKind: 'ignored' as const }),
    replies: { [status]: { description: answer.description, ...(output !== undefined && { schema: output }) } },
    errors: { ...errors, ...action.errors },
    async handle({ params, body, request }, { agent }) {
      const given = input === undefined ? {} : inputOf(input, body as object, request)
      const result = await run(agent, params, name, given, request.signal)
      return { status, ...(output !== undefined && { body: shown(result) }) }
    },
  })
}

/** The input of an action. For a GET, lists in the query replace those of the body; the handler's `query` has only the last value of each. */
function inputOf(schema: TObject, body: object, { method, url }: Request): unknown {
  if (method !== 'GET' && method !== 'HEAD') return body
  const { searchParams } = new URL(url)
  const lists = Object.keys(schema.properties).flatMap((name) => {
    const items = searchParams
      .getAll(name)
      .flatMap((list) => list.split(','))
      .filter((item) => item !== '')
    return items.length === 0 ? [] : [[name, items] as const]
  })
  return lists.length === 0 ? body : validate(schema, { ...body, ...Object.fromEntries(lists) })
}
