import type { Socket as Connection } from 'node:net'
import type { ServerChannel } from 'ssh2'
import type { App } from '../../../../src/app.ts'
import type { TerminalSizes } from '../../../../src/client/terminal-sizes.ts'
import { path as pathOf, search } from '../../../../src/compute/remote/paths.ts'
import { randomHex } from '../../../../src/lib/crypto/secret.ts'
import { tooMany } from '../../../../src/lib/errors/api-error.ts'
import { ConsoleText } from '../../../../src/lib/text/console-text.ts'
import type { Identity } from '../../../../src/model/access/identity.ts'
import { lineAnswer } from '../../../../src/model/console.ts'
import { consoleSizePath } from '../../../../src/model/schema/console-size.ts'
import type { WebSockets } from '../http/websocket.ts'
import { ChannelSocket } from './channel-socket.ts'
import { consoleOfUser } from './console-name.ts'

/** Longest line that `exec` types, bytes, as for `ConsoleExpect.send`. */
const maxLine = 16_384

export interface SessionOptions {
  readonly app: Pick<App, 'fetch'>
  readonly webSockets: Pick<WebSockets, 'connect'>
}

/** What a client wants to do on a console. */
export interface ConsoleSession {
  readonly user: string
  readonly identity: Identity | undefined
  readonly channel: ServerChannel
  readonly connection: Connection
  /** The line to type; absent: the client types itself. */
  readonly line?: string
  /** The terminal of the client, in which a line needs CR; undefined: it has none. */
  readonly terminal: TerminalSizes | undefined
}

/**
 * Joins a channel and the console that its user name means, as a request of that client for a websocket: roles, scopes and
 * gateways treat it as such. The exit codes are those of `patchbay exec`.
 */
export async function runSession({ app, webSockets }: SessionOptions, session: ConsoleSession): Promise<void> {
  const { user, identity, channel, connection, line, terminal } = session
  const answer = line === undefined ? undefined : new LineAnswer(terminal === undefined ? '\n' : '\r\n')
  const socket = new ChannelSocket(channel, connection, answer && ((bytes) => answer.push(bytes)))
  const name = consoleOfUser(user)
  if (name === undefined)
    return socket.finish(64, `patchbay: expected LAB/NODE as the user name, got ${JSON.stringify(user.slice(0, 200))}`)
  if (identity === undefined) return socket.finish(5, 'patchbay: the token of this key is no longer valid')
  if (line !== undefined && Buffer.byteLength(line) > maxLine)
    return socket.finish(64, `patchbay: the line is longer than ${maxLine} bytes`)
  const gone = new AbortController()
  socket.onClose(() => gone.abort())
  const watches = line === undefined && identity.role === 'read'
  const node = pathOf`/v2/projects/${name.lab}/nodes/${name.node}`
  if (watches && name.console !== undefined)
    return socket.finish(
      1,
      `patchbay: the token ${identity.name} may only read: it watches the first console of a node`,
    )
  const own = name.console === undefined ? {} : { terminal: randomHex(16) }
  const query = search({ replay: line === undefined ? undefined : '0', name: name.console, ...own })
  const request = new Request(`http://localhost${node}/console/${watches ? 'watch' : 'ws'}${query}`, {
    headers: { upgrade: 'websocket', connection: 'Upgrade' },
    signal: gone.signal,
  })
  if (watches && terminal !== undefined)
    channel.stderr.write(`Watching ${name.lab}/${name.node}: the token ${identity.name} may only read.\r\n`)
  const refusal = await webSockets.connect(request, socket, (it) => app.fetch(it, identity))
  if (refusal !== undefined) return socket.finish(1, `patchbay: ${await messageOf(refusal)}`)
  if (answer === undefined) {
    if (!watches)
      terminal?.show(async (size) => {
        const init = { method: 'POST', body: JSON.stringify({ ...size, ...own }), signal: gone.signal }
        const resized = await app.fetch(new Request(`http://localhost${node}/${consoleSizePath}`, init), identity)
        await resized.body?.cancel()
        if (resized.status === 429) throw tooMany('too many sizes')
        // Consoles of most nodes have no size.
        return resized.ok
      })
    return socket.passInput(lineAnswer.quietMs)
  }
  channel.resume()
  socket.type(Buffer.from(`${line}\r`))
  socket.finishWhenQuiet(lineAnswer.quietMs, lineAnswer.withinS * 1000, () => answer.end())
}

async function messageOf(refusal: Response): Promise<string> {
  const { message } = (await refusal.json().catch(() => ({}))) as { message?: unknown }
  return typeof message === 'string' ? message : `the service answered with status ${refusal.status}`
}

/** What a console shows after a line, as plain text without blanks at its ends. */
class LineAnswer {
  readonly #text = new ConsoleText()
  readonly #lineEnd: string
  #hasBegun = false
  /** Blanks that may be those at the end. */
  #held = ''

  constructor(lineEnd: string) {
    this.#lineEnd = lineEnd
  }

  push(bytes: Uint8Array): string {
    const text = this.#held + this.#text.push(bytes)
    const begun = this.#hasBegun ? text : text.trimStart()
    const shown = begun.trimEnd()
    this.#held = begun.slice(shown.length).slice(-maxLine)
    this.#hasBegun ||= shown !== ''
    return shown.replaceAll('\n', this.#lineEnd)
  }

  end(): string {
    return this.#hasBegun ? this.#lineEnd : ''
  }
}
