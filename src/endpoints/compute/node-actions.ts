import { Type } from '@sinclair/typebox'
import { conflict } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { type Endpoint, endpoint, noContent, ok } from '../../server/http/endpoint.ts'
import { noSuchNode, view } from '../../server/http/params.ts'
import type { NodeForm } from './node-form.ts'

type Action = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

const mayStart: readonly Action[] = ['start', 'resume', 'reload']

/** The summary of each action, and the meaning of its 409. */
function textsOf({
  noun,
  canBeSuspended,
  canBeReset = canBeSuspended,
  isStrict = false,
  conflicts,
}: KindDescriptor): Readonly<Record<Action, [summary: string, conflict: string]>> {
  const noReaction = `The ${noun} does not react`
  return {
    start: [
      `Start a ${noun}; a running one stays as it is${canBeSuspended ? ', a suspended one is resumed' : ''}`,
      conflicts.start,
    ],
    stop: [`Stop a ${noun}; a stopped one stays as it is`, noReaction],
    suspend: canBeSuspended
      ? [`Suspend a ${noun}; a stopped or suspended one stays as it is`, noReaction]
      : [`Does nothing: a ${noun} cannot be suspended`, noReaction],
    resume: [
      canBeSuspended
        ? `Resume a suspended ${noun}${isStrict ? '' : '; a running one stays as it is'}`
        : `Does nothing for a running ${noun}: it cannot be suspended`,
      isStrict
        ? `The ${noun} is not suspended, or does not react`
        : `The ${noun} is stopped: start it instead; or it does not react`,
    ],
    reload: canBeReset
      ? isStrict
        ? [`Reset a ${noun}, like its reset button`, `The ${noun} is stopped, or does not react`]
        : [`Reset a ${noun}, like its reset button; a stopped one stays as it is`, noReaction]
      : [`Stop and start a ${noun}`, conflicts.start],
  }
}

/** POST {node}/start, stop, suspend, resume, reload. The API versions differ in the answer. */
export function nodeActionEndpoints(form: NodeForm): readonly Endpoint[] {
  const { version, descriptor, path, tag, params, noun, schemas } = form
  const { isStrict = false, v1, v2, start: startInput } = descriptor
  const isV1 = version === 'v1'
  const startShows = isV1 ? v1.startShows : (v2?.startShows ?? true)
  const texts = textsOf(descriptor)
  const none = Type.Object({})
  return (['start', 'stop', 'suspend', 'resume', 'reload'] as const).map((name) => {
    const [summary, conflictText] = texts[name]
    const input = name === 'start' ? startInput : undefined
    const shows = name === 'start' && startShows
    const hasView = !isV1 && input === undefined
    return endpoint({
      method: 'POST',
      path: `${path}/${name}`,
      tag,
      summary,
      isUncounted: mayStart.includes(name),
      params,
      query: hasView ? Type.Object(view) : none,
      ...(input === undefined ? { bodyKind: 'ignored' } : { body: input }),
      replies: {
        ...(hasView && { 200: { description: 'With view=full: the node', schema: schemas.node } }),
        ...(shows
          ? { 200: { description: `The ${noun}, started`, schema: schemas.node } }
          : { 204: { description: 'Done' } }),
      },
      errors: { 404: noSuchNode, 409: conflictText },
      async handle({ params, query, body }, { agent: { nodes } }) {
        const ref = form.ref(params)
        const isRefused = isV1 && isStrict && name === 'start'
        if (isRefused && (await nodes.get(ref)).status === 'started') throw conflict(`The ${noun} is already running`)
        const node = await (name === 'start' ? nodes.start(ref, input && body) : nodes[name](ref))
        return shows || (hasView && 'view' in query) ? ok(form.toView(node)) : noContent
      },
    })
  })
}
