import { ApiError } from '../errors.ts'
import type { ComputeHello } from '../model/tunnel.ts'
import { AskingEnd, type AskingOptions } from '../tunnel/asking.ts'
import { codes } from '../tunnel/frames.ts'
import type { Wire } from '../tunnel/outbox.ts'
import { quoted } from './answer.ts'
import { keyOf } from './computes.ts'
import type { JoinGrant } from './join-tokens.ts'
import type { OpenSocket, Send, SocketTransport, Transport } from './transport.ts'

/** Why a compute that joins by itself cannot be asked. */
export const notJoined = 'it has not joined'

export interface TunnelsOptions extends Pick<AskingOptions, 'version' | 'limits' | 'patience' | 'watch'> {
  /** Registers the compute unless it is; rejects when it cannot be. */
  readonly enlist: (hello: ComputeHello) => Promise<void>
  /** It can be asked now, or not any more. */
  readonly joined: (id: string) => void
  readonly left: (id: string, reason: string) => void
}

/** The tunnels of computes that have joined: one a compute, the newest. */
export class Tunnels {
  readonly #options: TunnelsOptions
  readonly #ends = new Map<string, AskingEnd>()
  /** All that are open, also those that have not said yet who they are. */
  readonly #open = new Set<AskingEnd>()

  constructor(options: TunnelsOptions) {
    this.#options = options
  }

  /** Asks the compute with that id by its tunnel. */
  readonly transport: Transport = ({ compute_id }): Send => {
    return async (request) => {
      const end = this.#ends.get(keyOf(compute_id))
      if (end === undefined) throw new Error(notJoined)
      return end.send(request)
    }
  }

  has(id: string): boolean {
    return this.#ends.has(keyOf(id))
  }

  /** Opens websockets of it in the same way. */
  readonly sockets: SocketTransport = ({ compute_id }): OpenSocket => {
    return async (request) => {
      const end = this.#ends.get(keyOf(compute_id))
      if (end === undefined) throw new Error(notJoined)
      return end.openSocket(request)
    }
  }

  /** The end for a websocket whose token was good: it must be told of messages and of the close. */
  accept(wire: Wire, grant: JoinGrant): AskingEnd {
    const end: AskingEnd = new AskingEnd({
      ...this.#options,
      wire,
      greeted: (hello) => void this.#greeted(end, hello, grant).then(() => end.isOpen && wire.keep?.(hello)),
      ended: ({ reason }) => this.#ended(end, reason),
    })
    this.#open.add(end)
    return end
  }

  /** The end for a websocket that was accepted by a program which has slept, or ended, since; `resumed`: what it said then. */
  resume(wire: Wire, resumed: ComputeHello): AskingEnd {
    const end: AskingEnd = new AskingEnd({
      ...this.#options,
      wire,
      resumed,
      ended: ({ reason }) => this.#ended(end, reason),
    })
    this.#open.add(end)
    this.#take(end, resumed)
    this.#options.joined(resumed.compute_id)
    return end
  }

  /** Ends the tunnel of a compute that is not wanted any more. */
  dismiss(id: string): void {
    this.#ends.get(keyOf(id))?.close(codes.removed, 'The compute was removed')
  }

  close(): void {
    for (const end of this.#open) end.close(1001, 'The service ends')
  }

  async #greeted(end: AskingEnd, hello: ComputeHello, { compute_id }: JoinGrant): Promise<void> {
    if (compute_id !== undefined && keyOf(compute_id) !== keyOf(hello.compute_id)) {
      return end.close(codes.forbidden, 'The token is for another compute')
    }
    try {
      await this.#options.enlist(hello)
    } catch (error) {
      const reason = error instanceof ApiError ? error.message : 'The compute could not be registered'
      return end.close(codes.forbidden, quoted(reason))
    }
    if (!this.#open.has(end)) return
    this.#take(end, hello)
    end.accept()
    this.#options.joined(hello.compute_id)
  }

  #take(end: AskingEnd, { compute_id }: ComputeHello): void {
    const before = this.#ends.get(keyOf(compute_id))
    this.#ends.set(keyOf(compute_id), end)
    before?.close(codes.replaced, 'The compute has joined anew')
  }

  #ended(end: AskingEnd, reason: string): void {
    this.#open.delete(end)
    const id = end.hello?.compute_id
    if (id === undefined || this.#ends.get(keyOf(id)) !== end) return
    this.#ends.delete(keyOf(id))
    this.#options.left(id, quoted(reason))
  }
}
