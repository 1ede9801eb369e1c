import type { ComputeAnswer, Outgoing, SocketTransport, Transport } from '../../../src/compute/remote/transport.ts'
import { ConnectionLost } from '../../../src/compute/remote/transport.ts'
import { notJoined, type TunnelHolder } from '../../../src/fleet/pool/tunnels.ts'
import {
  askOrigin,
  decodeFault,
  joinPath,
  longLivedHeader,
  objectOrigin,
  packedOrigin,
  type TunnelFault,
  watchHeader,
} from './compute-requests.ts'
import type { Env } from './env.ts'
import { isolateHeader, isolateKey } from './feed-message.ts'
import { wholeFetch } from './fixed-length-bodies.ts'
import type { Objects } from './objects.ts'
import { packedHeader, packedLookup, packHeaders, wanted } from './packed-headers.ts'
import { decodeError } from './rpc-error.ts'
import { accepted } from './sockets.ts'

/** Most computes that are remembered to accept packed headers. */
const maxPacking = 1000

/** The tunnels of joined computes, for isolates, the objects of labs and the directory: their requests go to the objects of the computes. */
export class ObjectTunnels implements TunnelHolder {
  readonly #env: Env
  readonly #objects: Objects
  readonly #isWatched: boolean
  /** Ids of computes whose objects accept packed headers. */
  readonly #packing = new Set<string>()
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
    return this.#objects.compute(computeId, locationHint).fetch(objectOrigin + path, { headers })
  }

  async #answer(computeId: string, { path, longLived, ...request }: Outgoing): Promise<ComputeAnswer> {
    const { headers, body } = request
    const isWatched = this.#isWatched && request.method === 'POST'
    const marks = { ...(longLived === true && { [longLivedHeader]: '1' }), ...(isWatched && { [watchHeader]: '1' }) }
    // workerd has to know the length of a body, and the object looks at the headers of an upload itself.
    const isPacked = body === null && !isWatched && this.#packing.has(computeId)
    const sent = isPacked
      ? { ...marks, [packedHeader]: packHeaders(Object.entries(headers)) }
      : { ...headers, ...marks, [packedHeader]: wanted }
    let answer: Response
    try {
      answer = await this.#ask(computeId, (isPacked ? packedOrigin : askOrigin) + path, { ...request, headers: sent })
    } catch (error) {
      // The object may be one of an earlier version again.
      this.#packing.delete(computeId)
      throw error
    }
    const packed = answer.headers.get(packedHeader)
    if (packed === null) return this.#checked(answer)
    if (!isPacked) this.#remember(computeId)
    return { status: answer.status, headers: packedLookup(packed), body: answer.body }
  }

  #remember(computeId: string): void {
    if (this.#packing.size >= maxPacking) this.#packing.clear()
    this.#packing.add(computeId)
  }

  async #ask(computeId: string, url: string, { headers, ...init }: Omit<RequestInit, 'headers'> & Headed) {
    const proof = { [isolateHeader]: this.#key ?? (await this.#proof()) }
    const object = this.#objects.compute(computeId)
    const ask = wholeFetch((to, sent) => object.fetch(to, sent))
    return ask(url, { ...init, headers: { ...headers, ...proof }, redirect: 'manual' })
  }

  #checked(answer: Response): Response | Promise<Response> {
    const fault = decodeFault(answer)
    return fault === undefined ? answer : fault.then((it) => Promise.reject(errorOf(it)))
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

function errorOf(fault: TunnelFault): Error {
  if (fault.kind === 'refused') return decodeError(fault)
  if (fault.kind === 'lost') return new ConnectionLost(fault.message)
  return fault.message === notJoined ? new NotJoined(notJoined) : new Error(fault.message)
}

const withUpgrade = (headers: Readonly<Record<string, string>>): Headed => ({
  headers: { ...headers, Upgrade: 'websocket' },
})
