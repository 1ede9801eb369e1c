import { Type } from '@sinclair/typebox'
import type { ConsoleStream, HostAgent } from '../host-agent.ts'
import { bridgeConsole, bridgeScreen } from '../http/console.ts'
import { type Endpoint, endpoint } from '../http/endpoint.ts'
import { requireUpgrade } from '../http/feed.ts'
import { noSuchNode, sinceQuery } from '../http/params.ts'
import type { NodeRef } from '../kinds/node.ts'
import { noContentAfter } from './no-content.ts'
import type { NodePlace } from './node-place.ts'

/** The consoles of a node as websockets, as its kind has them. */
export function consoleEndpoints({ path: node, tag, params, ref, descriptor }: NodePlace): readonly Endpoint[] {
  const socket = (words: Pick<Endpoint, 'path' | 'summary'>, conflict: string, { open, bridge }: Transport): Endpoint =>
    endpoint({
      ...words,
      method: 'GET',
      role: 'operate',
      tag,
      params,
      query: Type.Pick(sinceQuery, ['ticket']),
      websocket: true,
      replies: {},
      errors: { 404: `${noSuchNode}, or the request is no websocket upgrade`, 409: conflict },
      async handle({ params, request }, { agent, upgrade }) {
        requireUpgrade(request)
        const aborter = new AbortController()
        const stream = await open(agent, ref(params), aborter.signal)
        return upgrade(request, {
          open: (socket) => bridge(socket, stream, aborter),
          abandon: () => aborter.abort(),
        })
      },
    })
  const text = socket(
    {
      path: `${node}/console/ws`,
      summary: 'The console as a websocket: the scroll-back, then live; binary frames out, text or binary in',
    },
    'The node does not run, or its console has no text',
    { open: (agent, ref, signal) => agent.nodes.console(ref, signal), bridge: bridgeConsole },
  )
  const screen = socket(
    {
      path: `${node}/console/vnc`,
      summary: 'The screen as a websocket that carries RFB (VNC) in binary frames, as noVNC speaks it',
    },
    'The node does not run, its console_type is not vnc, or its screen cannot be reached',
    { open: (agent, ref, signal) => agent.nodes.screen(ref, signal), bridge: bridgeScreen },
  )
  const reset = endpoint({
    method: 'POST',
    path: `${node}/console/reset`,
    tag,
    summary:
      'End the clients of the console, telnet and websockets, and listen for new ones; the guest does not notice',
    params,
    bodyKind: 'ignored',
    replies: { 204: { description: 'Done' } },
    errors: { 404: noSuchNode, 409: 'The node does not run' },
    handle: ({ params }, { agent }) => noContentAfter(agent.nodes.resetConsole(ref(params))),
  })
  return [...descriptor.consoles.map((it) => ({ text, screen })[it]), reset]
}

interface Transport {
  readonly open: (agent: HostAgent, ref: NodeRef, signal: AbortSignal) => Promise<ConsoleStream>
  readonly bridge: typeof bridgeConsole
}
