import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { conflict } from '../errors/api-error.ts'
import type { NodeAgent } from '../host-agent.ts'
import type { Reply } from '../http/endpoint.ts'
import { type Answer, type Endpoint, endpoint, noContent, ok } from '../http/endpoint.ts'
import { noSuchNode, view } from '../http/params.ts'
import { IouStart } from '../model/iou.ts'
import type { Node, NodeKindName, NodeRef } from '../model/node.ts'
import { type KindFacts, kindFacts } from './kinds.ts'

const nothing = Type.Object({})
const seen = Type.Object(view)

type Action = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

/** What an action does, and what 409 means; the agent does it, so it is only said here. */
function wordsOf({
  noun,
  canBePaused,
  canBeReset = canBePaused,
  isStrict,
  conflicts,
}: KindFacts): Readonly<Record<Action, [summary: string, not: string]>> {
  const disobeys = `The ${noun} does not obey`
  return {
    start: [
      `Start a ${noun}; one that runs is left alone${canBePaused ? ', a suspended one goes on' : ''}`,
      conflicts.start,
    ],
    stop: [`Stop a ${noun}; a stopped one is left alone`, disobeys],
    suspend: canBePaused
      ? [`Pause a ${noun}; a stopped or suspended one is left alone`, disobeys]
      : [`Does nothing: a ${noun} cannot be paused`, disobeys],
    resume: [
      canBePaused
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

/**
 * POST {node}/start, stop, suspend, resume, reload: the same in both faces, but for the answer of start. `full`: what a node
 * is shown as with view=full, where there is that.
 */
export function nodeActions<P extends TObject>(
  node: string,
  tag: string,
  params: P,
  kind: NodeKindName,
  ref: (params: Static<P>) => NodeRef,
  started: (node: Node) => Answer,
  startReply: Reply = { description: 'Done' },
  { refusesRunning = false, full }: { readonly refusesRunning?: boolean; readonly full?: TSchema } = {},
): readonly Endpoint[] {
  const words = wordsOf(kindFacts[kind])
  const action = (name: Action, answer: (node: Node) => Answer, status: number, reply: Reply): Endpoint => {
    const [summary, not] = words[name]
    return endpoint({
      method: 'POST',
      path: `${node}/${name}`,
      tag,
      summary,
      params,
      query: full === undefined ? nothing : seen,
      bodyKind: 'ignored',
      replies: {
        ...(full !== undefined && { 200: { description: 'With view=full: the node', schema: full } }),
        [status]: reply,
      },
      errors: { 404: noSuchNode, 409: not },
      async handle({ params, query }, { agent }) {
        const nodes: NodeAgent = agent.nodes
        if (name === 'start' && refusesRunning && (await nodes.get(ref(params))).status === 'started') {
          throw conflict(`The ${kindFacts[kind].noun} runs already`)
        }
        const node = await nodes[name](ref(params))
        return full !== undefined && 'view' in query ? ok(node) : answer(node)
      },
    })
  }
  const startRouter = endpoint({
    method: 'POST',
    path: `${node}/start`,
    tag,
    summary: words.start[0],
    params,
    body: IouStart,
    replies: { [startReply.schema === undefined ? 204 : 200]: startReply },
    errors: { 404: noSuchNode, 409: words.start[1] },
    handle: async ({ params, body }, { agent }) =>
      started(await agent.routers.start(ref(params) as NodeRef<'iou'>, body)),
  })
  const done = { description: 'Done' }
  return [
    kind === 'iou' ? startRouter : action('start', started, startReply.schema === undefined ? 204 : 200, startReply),
    ...(['stop', 'suspend', 'resume', 'reload'] as const).map((name) => action(name, () => noContent, 204, done)),
  ]
}
