import { Type } from '@sinclair/typebox'
import { conflict } from '../errors/api-error.ts'
import { type Endpoint, endpoint, noContent, ok } from '../http/endpoint.ts'
import { noSuchNode, view } from '../http/params.ts'
import type { KindDescriptor } from '../kinds/kind.ts'
import type { NodePlace } from './node-place.ts'

type Action = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

/** The summary of each action, and the meaning of its 409. */
function textsOf({
  noun,
  canBeSuspended,
  canBeReset = canBeSuspended,
  isStrict = false,
  conflicts,
}: KindDescriptor): Readonly<Record<Action, [summary: string, not: string]>> {
  const disobeys = `The ${noun} does not obey`
  return {
    start: [
      `Start a ${noun}; one that runs is left alone${canBeSuspended ? ', a suspended one goes on' : ''}`,
      conflicts.start,
    ],
    stop: [`Stop a ${noun}; a stopped one is left alone`, disobeys],
    suspend: canBeSuspended
      ? [`Pause a ${noun}; a stopped or suspended one is left alone`, disobeys]
      : [`Does nothing: a ${noun} cannot be paused`, disobeys],
    resume: [
      canBeSuspended
        ? `Let a suspended ${noun} go on${isStrict ? '' : '; one that runs is left alone'}`
        : `Does nothing for a ${noun} that runs: it cannot be paused`,
      isStrict
        ? `The ${noun} is not suspended, or does not obey`
        : `The ${noun} is stopped: it is started instead; or it does not obey`,
    ],
    reload: canBeReset
      ? isStrict
        ? [`Reset a ${noun}, as by its button`, `The ${noun} is stopped, or does not obey`]
        : [`Reset a ${noun}, as by its button; a stopped one is left alone`, disobeys]
      : [`Stop a ${noun} and start it`, conflicts.start],
  }
}

/** POST {node}/start, stop, suspend, resume, reload. The API versions differ in the answer. */
export function lifeCycleEndpoints(place: NodePlace): readonly Endpoint[] {
  const { version, descriptor, path, tag, params, noun, schemas } = place
  const { isStrict = false, v1, v2, start: startInput } = descriptor
  const isV1 = version === 'v1'
  const startShows = isV1 ? v1.startShows : (v2?.startShows ?? true)
  const texts = textsOf(descriptor)
  const none = Type.Object({})
  return (['start', 'stop', 'suspend', 'resume', 'reload'] as const).map((name) => {
    const [summary, not] = texts[name]
    const input = name === 'start' ? startInput : undefined
    const shows = name === 'start' && startShows
    const hasView = !isV1 && input === undefined
    return endpoint({
      method: 'POST',
      path: `${path}/${name}`,
      tag,
      summary,
      params,
      query: hasView ? Type.Object(view) : none,
      ...(input === undefined ? { bodyKind: 'ignored' } : { body: input }),
      replies: {
        ...(hasView && { 200: { description: 'With view=full: the node', schema: schemas.node } }),
        ...(shows
          ? { 200: { description: `The ${noun}, started`, schema: schemas.node } }
          : { 204: { description: 'Done' } }),
      },
      errors: { 404: noSuchNode, 409: not },
      async handle({ params, query, body }, { agent: { nodes } }) {
        const ref = place.ref(params)
        const isRefused = isV1 && isStrict && name === 'start'
        if (isRefused && (await nodes.get(ref)).status === 'started') throw conflict(`The ${noun} runs already`)
        const node = await (name === 'start' ? nodes.start(ref, input && body) : nodes[name](ref))
        return shows || (hasView && 'view' in query) ? ok(place.shown(node)) : noContent
      },
    })
  })
}
