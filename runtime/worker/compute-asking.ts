import type { ComputeAnswer, Outgoing, SocketTransport, Transport } from '../../src/client/transport.ts'
import { ConnectionLost } from '../../src/client/transport.ts'
import { ApiError } from '../../src/errors/api-error.ts'
import type { ErrorWord } from '../../src/errors/words.ts'
import { notJoined, type TunnelHolder } from '../../src/fleet/tunnels.ts'
import type { Env } from './env.ts'
import { isolateHeader, isolateKey } from './feed-message.ts'
import type { Objects } from './objects.ts'
import { accepted } from './sockets.ts'
import { wholeFetch } from './whole-bodies.ts'

const origin = 'http://object'
/** Requests to the object of a compute: a request for the compute (`askOrigin` and the path there), or a tunnel (`joinPath`). */
export const askOrigin = `${origin}/ask`
export const joinPath = '/join'
export const feedsPath = '/feeds'

/** Says that the answer may be idle without a limit; see `Outgoing.rests`. */
export const restsHeader = 'x-patchbay-rests'
/** Says that the object must record the digest of an image in the body; without it, the sender does that. */
export const watchHeader = 'x-patchbay-watch'
/** The kind of fault, in place of an answer of the compute. */
export const faultHeader = 'x-patchbay-fault'

/** Why there is no answer. `absent`: the compute did not get the request; `lost`: the tunnel ended; `refused`: an error for the client. */
export type TunnelFault =
  | { readonly kind: 'absent' | 'lost'; readonly message: string }
  | {
      readonly kind: 'refused'
      readonly message: string
      readonly status: number
      readonly word: ErrorWord
      readonly headers: Readonly<Record<string, string>>
    }

/** The tunnels of joined computes, for isolates, the objects of labs and the directory: their requests go to the objects of the computes. */
export class ComputeAsking implements TunnelHolder {
  readonly #env: Env
  readonly #objects: Objects
  readonly #isWatched: boolean
  #key: string | undefined

  /** `isWatched`: the objects record the digests of images that are uploaded. */
  constructor(env: Env, objects: Objects, isWatched = false) {
    this.#env = env
    this.#objects = objects
    this.#isWatched = isWatched
  }

  readonly transport: Transport =
    ({ compute_id }) =>
    (request) =>
      this.#answer(compute_id, request)

  readonly sockets: SocketTransport =
    ({ compute_id }) =>
    async ({ path, headers, signal }) => {
      const answer = await this.#ask(compute_id, path, { ...withUpgrade(headers), signal })
      const { webSocket } = answer
      return webSocket === null ? this.#checked(answer) : accepted(webSocket)
    }

  /** Always true: only the object of the compute knows whether there is a tunnel. */
  has(): boolean {
    return true
  }

  addressOf(): undefined {}

  dismiss(_: string): void {}

  close(): void {}

  /** Opens the tunnel of a compute that has a join token with this key; `address`, `near`: from where it joins. */
  async join(
    computeId: string,
    { key, address, near }: { key: string; address: string; near: DurableObjectLocationHint | undefined },
  ): Promise<Response> {
    const path = `${joinPath}?${new URLSearchParams({ key, address })}`
    const headers = { Upgrade: 'websocket', [isolateHeader]: await this.#proof() }
    return this.#objects.compute(computeId, near).fetch(origin + path, { headers })
  }

  async #answer(computeId: string, { path, rests, ...request }: Outgoing): Promise<ComputeAnswer> {
    const isWatched = this.#isWatched && request.method === 'POST'
    const marks = { ...(rests === true && { [restsHeader]: '1' }), ...(isWatched && { [watchHeader]: '1' }) }
    const headers = { ...request.headers, ...marks }
    const answer = await this.#ask(computeId, path, { ...request, headers })
    return this.#checked(answer)
  }

  async #ask(computeId: string, path: string, { headers, ...init }: Omit<RequestInit, 'headers'> & Headed) {
    const proof = { [isolateHeader]: this.#key ?? (await this.#proof()) }
    const object = this.#objects.compute(computeId)
    const ask = wholeFetch((url, sent) => object.fetch(url, sent))
    return ask(askOrigin + path, { ...init, headers: { ...headers, ...proof }, redirect: 'manual' })
  }

  #checked(answer: Response): Response | Promise<Response> {
    return answer.headers.has(faultHeader) ? this.#failed(answer) : answer
  }

  async #failed(answer: Response): Promise<never> {
    const fault: TunnelFault = await answer.json()
    if (fault.kind === 'refused') {
      const { status, message, word, headers } = fault
      throw new ApiError(status, message, { word, headers })
    }
    if (fault.kind === 'lost') throw new ConnectionLost(fault.message)
    throw fault.message === notJoined ? new NotJoined(notJoined) : new Error(fault.message)
  }

  async #proof(): Promise<string> {
    this.#key ??= await isolateKey(this.#env)
    return this.#key
  }
}

interface Headed {
  readonly headers: Readonly<Record<string, string>>
}

/** The object of the compute has no tunnel. */
export class NotJoined extends Error {
  override readonly name = 'NotJoined'
}

const withUpgrade = (headers: Readonly<Record<string, string>>): Headed => ({
  headers: { ...headers, Upgrade: 'websocket' },
})
