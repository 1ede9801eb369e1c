import { ignore } from '../../lib/async/ignore.ts'
import { isPlainTarget } from '../../lib/http/plain-target.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import { type Upgrade, upgradeToken } from '../../lib/http/socket.ts'
import {
  type ComputeHello,
  GatewayHello,
  type TunnelAnswer,
  TunnelRequest,
  tunnelProtocol,
} from '../../model/tunnel.ts'
import { bodyOfStream, sendBody, sendBytes } from './bodies.ts'
import { bodilessRequest } from './bodiless-request.ts'
import { decodeJson, frameKinds, type TunnelFrame } from './frames.ts'
import { type LinkOptions, TunnelLink } from './link.ts'
import { Messages } from './messages.ts'
import type { Stream } from './stream.ts'

/** Paths that a gateway may request: those of this host. Some are not below /v2/compute. */
const open = ['/v2/compute/', '/v1/projects/', '/v2/computes/local/auto_idlepc']

export interface AnsweringOptions extends Pick<LinkOptions, 'wire' | 'limits' | 'timeouts' | 'later' | 'ended'> {
  readonly who: Pick<ComputeHello, 'version' | 'compute_id' | 'name'>
  /** Answers a request whose sender the gateway has admitted; `upgrade` makes websockets of the tunnel. Never rejects. */
  readonly fetch: (request: Request, upgrade: Upgrade) => Promise<Response | RelayedAnswer>
  /** Called with the version of the gateway when the gateway accepts this compute. */
  readonly greeted: (version: string) => void
}

/** The compute's end of a tunnel, which answers requests. It sends its HELLO at once. */
export class AnsweringEnd extends TunnelLink {
  readonly #options: AnsweringOptions
  #gateway: GatewayHello | undefined
  /** Requests whose handlers still run, also those whose streams have ended. */
  #working = 0

  constructor(options: AnsweringOptions) {
    super(options)
    this.#options = options
    this.#greet()
  }

  #greet(): void {
    const hello: ComputeHello = { protocol: tunnelProtocol, ...this.#options.who, ...this.limits, batches: true }
    this.sendJson(frameKinds.hello, 0, hello)
  }

  protected override greeted(payload: Uint8Array): void {
    const isAgain = this.#gateway !== undefined
    this.#gateway = decodeJson(payload, GatewayHello)
    this.restart('the gateway restarts')
    if (isAgain) this.#greet()
    else this.#options.greeted(this.#gateway.version)
  }

  protected override opened({ stream: id, payload }: TunnelFrame): void {
    const opening = decodeJson(payload, TunnelRequest)
    const stream = this.add(id, this.#gateway?.window ?? 0)
    if (this.#working >= this.limits.streams) return stream.reset(new Error('too many requests are open'))
    this.#working += 1
    void this.#answer(stream, opening)
      .catch((error: Error) => stream.reset(error))
      .finally(() => {
        this.#working -= 1
      })
  }

  async #answer(stream: Stream, { method, path, headers, body }: TunnelRequest): Promise<void> {
    if (!open.some((start) => path.startsWith(start)) || !isPlainTarget(path)) {
      throw new Error(`only paths of ${open.join(' and ')} are answered`)
    }
    const isUpgrade = headers.some(([name]) => name.toLowerCase() === 'upgrade')
    if (!body) stream.takeEnd()
    const url = `http://localhost${path}`
    const head = { url, method, headers: new Headers(headers), signal: () => stream.stopped }
    // A handler that reads no more of the request still answers it; the stream ends with the answer.
    const content = body && !isUpgrade ? bodyOfStream(stream, { cancel: () => {} }) : null
    const request =
      content === null
        ? bodilessRequest(head)
        : new Request(url, { ...head, signal: stream.stopped, body: content, ...{ duplex: 'half' } })
    let handlers: Parameters<Upgrade>[1] | undefined
    const response = await this.#options.fetch(request, (_, on) => {
      handlers = on
      return new Response(null, { headers: { [upgradeToken]: 'tunnel' } })
    })
    if (handlers !== undefined) return join(stream, handlers)
    const { answers, batches } = this.#gateway ?? {}
    await respond(stream, response, {
      isHead: method === 'HEAD',
      inOne: answers === true,
      isBatched: batches === true,
    })
  }
}

interface Responding {
  readonly isHead: boolean
  /** Whether the gateway takes ANSWER frames. */
  readonly inOne: boolean
  /** Whether it takes BATCH frames. */
  readonly isBatched: boolean
}

async function respond(
  stream: Stream,
  response: Response | RelayedAnswer,
  { isHead, inOne, isBatched }: Responding,
): Promise<void> {
  const { status } = response
  const headers = 'content' in response ? Object.entries(response.headers) : [...response.headers]
  const content = 'content' in response ? response.content : response.body
  const body = content instanceof Uint8Array ? null : content
  if (stream.stopReason !== undefined)
    return void body?.cancel(stream.stopReason).catch(ignore('the other end has stopped the stream'))
  const answer: TunnelAnswer = { status, headers, body: content !== null && !isHead }
  if (content === null || isHead) {
    body?.cancel().catch(ignore('an answer to HEAD has no body'))
    stream.sendHead(answer)
    stream.endSilently()
  } else if (content instanceof Uint8Array) {
    if (!inOne || !stream.sendAnswer(answer, content, isBatched)) {
      stream.sendHead(answer)
      await sendBytes(content, stream)
    }
  } else {
    stream.sendHead(answer)
    await sendBody(content, stream, {
      stop: (reader) => void reader.cancel(stream.stopReason).catch(ignore('the other end has stopped the stream')),
    })
  }
  // The handler does not read the rest of the request, so the gateway must not wait to send it.
  if (stream.ending === undefined) stream.reset(new Error('it was answered'))
}

/** Turns the stream into a websocket. */
function join(stream: Stream, handlers: Parameters<Upgrade>[1]): void {
  if (stream.stopReason !== undefined) return handlers.abandon()
  stream.sendHead({ status: 101, headers: [], body: false } satisfies TunnelAnswer)
  const messages = new Messages(stream)
  handlers.open(messages)
  messages.resume()
}
