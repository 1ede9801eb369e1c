import type { Static, TObject } from '@sinclair/typebox'
import type { NodeAgent } from '../host-agent.ts'
import type { Reply } from '../http/endpoint.ts'
import { type Answer, type Endpoint, endpoint } from '../http/endpoint.ts'
import { noSuchNode } from '../http/params.ts'
import type { Node, NodeRef } from '../model/node.ts'

type Action = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

const summaries: Readonly<Record<Action, string>> = {
  start: 'Start a node; one that runs is left alone',
  stop: 'Stop a node; a stopped one is left alone',
  suspend: 'Suspend a node; kinds that cannot be paused ignore it',
  resume: 'Resume a suspended node',
  reload: 'Reload a node; for a pc that is stop and start',
}

/** POST {node}/start, stop, suspend, resume, reload: the same in both faces, but for the answer of start. */
export function nodeActions<P extends TObject>(
  node: string,
  tag: string,
  params: P,
  ref: (params: Static<P>) => NodeRef,
  started: (node: Node) => Answer,
  startReply: Reply = { description: 'Done' },
): readonly Endpoint[] {
  const action = (name: Action, answer: (node: Node) => Answer, status: number, reply: Reply): Endpoint =>
    endpoint({
      method: 'POST',
      path: `${node}/${name}`,
      tag,
      summary: summaries[name],
      params,
      bodyKind: 'ignored',
      replies: { [status]: reply },
      errors: { 404: noSuchNode, 409: 'It is not possible now; the message says why' },
      handle: async ({ params }, { agent }) => answer(await (agent.nodes as NodeAgent)[name](ref(params))),
    })
  const done = { description: 'Done' }
  const nothing = () => ({ status: 204 })
  return [
    action('start', started, startReply.schema === undefined ? 204 : 200, startReply),
    ...(['stop', 'suspend', 'resume', 'reload'] as const).map((name) => action(name, nothing, 204, done)),
  ]
}
