import { type Static, type TObject, Type } from '@sinclair/typebox'
import type { ConsoleStream, LocalHostAgent } from '../../host-agent.ts'
import { ConsoleExpect, ConsoleMatch, NodeReady } from '../../model/console.ts'
import type { NodeRef } from '../../model/kinds/node.ts'
import { TerminalId } from '../../model/schema/console-size.ts'
import { oneOf } from '../../model/schema/fields.ts'
import { bridgeConsole, bridgeScreen, watchConsole } from '../../server/feeds/console.ts'
import { requireUpgrade } from '../../server/feeds/feed.ts'
import { type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import { noSuchNode, sinceQuery } from '../../server/http/params.ts'
import { noContentAfter } from './no-content.ts'
import type { NodeForm } from './node-form.ts'

const lineCount = (description: string) =>
  Type.String({ pattern: '^[1-9][0-9]{0,4}$', expects: 'a number from 1 to 99999', description })

/** The query of the websocket of a text console. */
export const consoleQuery = Type.Object({
  ticket: sinceQuery.properties.ticket,
  replay: Type.Optional(oneOf(['0', '1'], { description: '0: without the scroll-back; default 1' })),
  name: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'Another console of the node, with a program of its own; default: the first one',
    }),
  ),
  terminal: Type.Optional(TerminalId),
  lines: Type.Optional(lineCount('Only the last lines of the scroll-back; default: all')),
})
/** Of a client who watches: it names no further console, whose program would begin. */
export const watchQuery = Type.Pick(consoleQuery, ['ticket'])
export const logQuery = Type.Object({
  lines: Type.Optional(lineCount('How many lines; default 200. A console keeps 64 KiB')),
})

/** The consoles of a node as websockets and as text, as its kind has them. */
export function consoleEndpoints({ path: node, tag, params, ref, descriptor }: NodeForm): readonly Endpoint[] {
  const socket = (
    about: Pick<Endpoint, 'path' | 'summary' | 'role'>,
    conflict: string,
    { query, open, bridge }: ConsoleSocket,
  ): Endpoint =>
    endpoint({
      role: 'operate',
      ...about,
      method: 'GET',
      tag,
      params,
      query,
      websocket: true,
      replies: {},
      errors: { 404: `${noSuchNode}, or the request is not a websocket upgrade`, 409: conflict },
      async handle({ params, query, request }, { agent, upgrade }) {
        requireUpgrade(request)
        const aborter = new AbortController()
        const stream = await open(agent, ref(params), aborter.signal, query)
        return upgrade(request, {
          open: (socket) => bridge(socket, stream, aborter),
          abandon: () => aborter.abort(),
        })
      },
    })
  const notRunning = 'The node is not running, or its console has no text'
  /** Whatever the client names: who may only read starts no program. */
  const openShown: ConsoleSocket['open'] = (agent, ref, signal) => agent.nodes.console(ref, signal, { replay: true })
  const openText: ConsoleSocket['open'] = (agent, ref, signal, { replay, lines, name, terminal }) =>
    agent.nodes.console(ref, signal, {
      replay: replay !== '0',
      ...(lines !== undefined && { lines: Number(lines) }),
      ...(name !== undefined && { name }),
      ...(terminal !== undefined && { terminal }),
    })
  const text = socket(
    {
      path: `${node}/console/ws`,
      summary:
        'The console as a websocket: the scroll-back, then new output; it sends binary frames, and accepts text or binary ones',
    },
    notRunning,
    { query: consoleQuery, open: openText, bridge: bridgeConsole },
  )
  const watch = socket(
    {
      path: `${node}/console/watch`,
      summary: 'Watch the console as a websocket: what the client sends is dropped',
      role: 'read',
    },
    notRunning,
    { query: watchQuery, open: openShown, bridge: watchConsole },
  )
  const screen = socket(
    {
      path: `${node}/console/vnc`,
      summary: 'The screen as a websocket that carries RFB (VNC) in binary frames, as noVNC speaks it',
    },
    'The node is not running, its console_type is not vnc, or its screen cannot be reached',
    {
      query: Type.Pick(sinceQuery, ['ticket']),
      open: (agent, ref, signal) => agent.nodes.screen(ref, signal),
      bridge: bridgeScreen,
    },
  )
  const reset = endpoint({
    method: 'POST',
    path: `${node}/console/reset`,
    tag,
    summary:
      'Disconnect all telnet and websocket clients of the console, and listen for new ones; the guest does not notice',
    params,
    bodyKind: 'ignored',
    replies: { 204: { description: 'Done' } },
    errors: { 404: noSuchNode, 409: 'The node is not running' },
    handle: ({ params }, { agent }) => noContentAfter(agent.nodes.resetConsole(ref(params))),
  })
  const log = endpoint({
    ...{ method: 'GET', path: `${node}/console/log`, tag, params, role: 'operate' },
    summary: 'The last lines of the console as text; empty without output',
    query: logQuery,
    replies: { 200: { description: 'The lines, without CR', media: 'text/plain' } },
    errors: { 404: noSuchNode, 409: 'The console has no text' },
    async handle({ params, query: { lines = '200' } }, { agent }) {
      const text = new TextDecoder().decode(await agent.nodes.consoleLog(ref(params)))
      const headers = {
        'Content-Type': 'text/plain; charset=utf-8',
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
      }
      return new Response(lastLines(text, Number(lines)), { headers })
    },
  })
  const expect = endpoint({
    ...{ method: 'POST', path: `${node}/console/expect`, tag, params },
    summary: 'Type on the console, and wait until its output matches a regular expression, or the console is quiet',
    description: 'With `send`, only later output is searched; without it, also what the console has already shown.',
    body: ConsoleExpect,
    replies: { 200: { description: 'The output matches', schema: ConsoleMatch } },
    errors: {
      404: noSuchNode,
      409: 'No match in time (`not-in-time`, with the last lines), or the node is not running',
      429: 'Too many requests are waiting',
    },
    handle: async ({ params, body, request }, { agent }) =>
      ok(await agent.nodes.expect(ref(params), body, request.signal)),
  })
  const ready = endpoint({
    method: 'POST',
    path: `${node}/ready`,
    tag,
    params,
    summary: 'Wait until a node is ready',
    body: NodeReady,
    replies: { 204: { description: 'The node is ready' } },
    errors: {
      404: noSuchNode,
      409: 'The node was not ready in time, or is not running',
      429: 'Too many requests are waiting',
    },
    handle: ({ params, body, request }, { agent }) =>
      noContentAfter(agent.nodes.ready(ref(params), body, request.signal)),
  })
  const hasText = descriptor.consoles.includes('text')
  return [
    ...descriptor.consoles.map((it) => ({ text, screen })[it]),
    reset,
    ready,
    ...(hasText ? [watch, log, expect] : []),
  ]
}

/** The last lines of a text, without CR and NUL. A line end at the end of the text does not begin another line. */
function lastLines(text: string, count: number): string {
  const lines = text.replaceAll('\r', '').replaceAll('\0', '').split('\n')
  const isEnded = lines.at(-1) === ''
  return lines.slice(-(count + (isEnded ? 1 : 0))).join('\n')
}

/** How a console is opened on the agent and joined with a websocket. */
interface ConsoleSocket {
  readonly query: TObject
  readonly open: (
    agent: LocalHostAgent,
    ref: NodeRef,
    signal: AbortSignal,
    query: Static<typeof consoleQuery>,
  ) => Promise<ConsoleStream>
  readonly bridge: typeof bridgeConsole
}
