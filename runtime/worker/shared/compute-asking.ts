import type { ComputeAnswer, Outgoing, SocketTransport, Transport } from '../../../src/compute/remote/transport.ts'
import { ConnectionLost } from '../../../src/compute/remote/transport.ts'
import { notJoined, type TunnelHolder } from '../../../src/fleet/pool/tunnels.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import type { ErrorCode } from '../../../src/lib/errors/words.ts'
import type { Env } from './env.ts'
import { isolateHeader, isolateKey } from './feed-message.ts'
import { wholeFetch } from './fixed-length-bodies.ts'
import type { Objects } from './objects.ts'
import { jointOf, lookedUp, packedHeader, wanted } from './packed-headers.ts'
import { accepted } from './sockets.ts'

const origin = 'http://object'
/**
 * Requests to the object of a compute: a request for the compute (`askOrigin` or `jointOrigin`, and the path there), or a tunnel (`joinPath`).
 * `jointOrigin`: its headers are joint. An object of an earlier version refuses it.
 */
export const askOrigin = `${origin}/ask`
export const jointOrigin = `${origin}/joint`
export const joinPath = '/join'
export const feedsPath = '/feeds'

/** Most computes that are remembered to take joint headers. */
const maxJoint = 1000

/** Says that the answer may be idle without a limit; see `Outgoing.rests`. */
export const longLivedHeader = 'x-patchbay-rests'
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
      readonly word: ErrorCode
      readonly headers: Readonly<Record<string, string>>
    }

/** The tunnels of joined computes, for isolates, the objects of labs and the directory: their requests go to the objects of the computes. */
export class ComputeAsking implements TunnelHolder {
  readonly #env: Env
  readonly #objects: Objects
  readonly #isWatched: boolean
  /** Ids of computes whose objects take joint headers. */
  readonly #joint = new Set<string>()
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
      const answer = await this.#ask(compute_id, askOrigin + path, { ...withUpgrade(headers), signal })
      const { webSocket } = answer
      return webSocket === null ? this.#checked(answer) : accepted(webSocket)
    }

  /** Always true: only the object of the compute knows whether there is a tunnel. */
  has(): boolean {
    return true
  }

  addressOf(): undefined {}

  unregister(_: string): void {}

  close(): void {}

  /** Opens the tunnel of a compute that has a join token with this key; `address`, `locationHint`: from where it joins. */
  async join(
    computeId: string,
    {
      key,
      address,
      locationHint,
    }: { key: string; address: string; locationHint: DurableObjectLocationHint | undefined },
  ): Promise<Response> {
    const path = `${joinPath}?${new URLSearchParams({ key, address })}`
    const headers = { Upgrade: 'websocket', [isolateHeader]: await this.#proof() }
    return this.#objects.compute(computeId, locationHint).fetch(origin + path, { headers })
  }

  async #answer(computeId: string, { path, longLived, ...request }: Outgoing): Promise<ComputeAnswer> {
    const { headers, body } = request
    const isWatched = this.#isWatched && request.method === 'POST'
    const marks = { ...(longLived === true && { [longLivedHeader]: '1' }), ...(isWatched && { [watchHeader]: '1' }) }
    // workerd has to know the length of a body, and the object looks at the headers of an upload itself.
    const isJoint = body === null && !isWatched && this.#joint.has(computeId)
    const sent = isJoint
      ? { ...marks, [packedHeader]: jointOf(Object.entries(headers)) }
      : { ...headers, ...marks, [packedHeader]: wanted }
    let answer: Response
    try {
      answer = await this.#ask(computeId, (isJoint ? jointOrigin : askOrigin) + path, { ...request, headers: sent })
    } catch (error) {
      // The object may be one of an earlier version again.
      this.#joint.delete(computeId)
      throw error
    }
    const joint = answer.headers.get(packedHeader)
    if (joint === null) return this.#checked(answer)
    if (!isJoint) this.#remember(computeId)
    return { status: answer.status, headers: lookedUp(joint), body: answer.body }
  }

  #remember(computeId: string): void {
    if (this.#joint.size >= maxJoint) this.#joint.clear()
    this.#joint.add(computeId)
  }

  async #ask(computeId: string, url: string, { headers, ...init }: Omit<RequestInit, 'headers'> & Headed) {
    const proof = { [isolateHeader]: this.#key ?? (await this.#proof()) }
    const object = this.#objects.compute(computeId)
    const ask = wholeFetch((to, sent) => object.fetch(to, sent))
    return ask(url, { ...init, headers: { ...headers, ...proof }, redirect: 'manual' })
  }

  #checked(answer: Response): Response | Promise<Response> {
    return answer.headers.has(faultHeader) ? this.#failed(answer) : answer
  }

  async #failed(answer: Response): Promise<never> {
    const fault: TunnelFault = await answer.json()
    if (fault.kind === 'refused') {
      const { status, message, word, headers } = fault
      throw new ApiError(status, message, { code: word, headers })
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
