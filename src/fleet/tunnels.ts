import { quoteText } from '../client/answer.ts'
import type { OpenSocket, Send, SocketTransport, Transport } from '../client/transport.ts'
import { ApiError } from '../errors/api-error.ts'
import type { ComputeHello } from '../model/tunnel.ts'
import { AskingEnd, type AskingOptions } from '../tunnel/asking.ts'
import { resetCodes } from '../tunnel/frames.ts'
import type { TunnelWire } from '../tunnel/outbox.ts'
import { computeKey } from './computes.ts'
import type { JoinGrant } from './join-tokens.ts'

/** Why a compute that joins by itself cannot be asked. */
export const notJoined = 'it has not joined'

export interface TunnelsOptions extends Pick<AskingOptions, 'version' | 'limits' | 'timeouts' | 'watch'> {
  /** Registers the compute unless it is, and makes the token its own; rejects when it cannot be. */
  readonly enlist: (hello: ComputeHello, grant: JoinGrant) => Promise<void>
  /** Whether a token is still good, by its key. */
  readonly isGood: (token: string) => Promise<boolean>
  /** It can be asked now, or not any more. */
  readonly joined: (id: string) => void
  readonly left: (id: string, reason: string) => void
}

/** What must be told to go on with a tunnel in another program. */
export interface KeptTunnel {
  readonly hello: ComputeHello
  /** The key of the token that it was opened with. */
  readonly token?: string
}

interface Joined {
  readonly end: AskingEnd
  /** Undefined: a version before this one kept nothing of it. */
  readonly token: string | undefined
}

/**
 * The tunnels of computes that have joined: one a compute, the newest that was opened with its token. Another token does not
 * take the place of a tunnel that is open, unless the token of that one is not good any more.
 */
export class Tunnels {
  readonly #options: TunnelsOptions
  readonly #ends = new Map<string, Joined>()
  /** All that are open, also those that have not said yet who they are. */
  readonly #open = new Set<AskingEnd>()

  constructor(options: TunnelsOptions) {
    this.#options = options
  }

  /** Asks the compute with that id by its tunnel. */
  readonly transport: Transport = ({ compute_id }): Send => {
    return async (request) => {
      const end = this.#ends.get(computeKey(compute_id))?.end
      if (end === undefined) throw new Error(notJoined)
      return end.send(request)
    }
  }

  has(id: string): boolean {
    return this.#ends.has(computeKey(id))
  }

  /** Opens websockets of it in the same way. */
  readonly sockets: SocketTransport = ({ compute_id }): OpenSocket => {
    return async (request) => {
      const end = this.#ends.get(computeKey(compute_id))?.end
      if (end === undefined) throw new Error(notJoined)
      return end.openSocket(request)
    }
  }

  /** The end for a websocket whose token was good: it must be told of messages and of the close. */
  accept(wire: TunnelWire, grant: JoinGrant): AskingEnd {
    const end: AskingEnd = new AskingEnd({
      ...this.#options,
      wire,
      greeted: (hello) =>
        void this.#greeted(end, hello, grant).then(() => {
          if (end.isOpen) wire.keep?.({ hello, token: grant.key } satisfies KeptTunnel)
        }),
      ended: ({ reason }) => this.#ended(end, reason),
    })
    this.#open.add(end)
    return end
  }

  /** The end for a websocket that was accepted by a program which has slept, or ended, since. */
  resume(wire: TunnelWire, { hello: resumed, token }: KeptTunnel): AskingEnd {
    const end: AskingEnd = new AskingEnd({
      ...this.#options,
      wire,
      resumed,
      ended: ({ reason }) => this.#ended(end, reason),
    })
    this.#open.add(end)
    this.#take(end, resumed, token)
    this.#options.joined(resumed.compute_id)
    return end
  }

  /** Ends the tunnel of a compute that is not wanted any more. */
  dismiss(id: string): void {
    this.#ends.get(computeKey(id))?.end.close(resetCodes.removed, 'The compute was removed')
  }

  close(): void {
    for (const end of this.#open) end.close(1001, 'The service ends')
  }

  async #greeted(end: AskingEnd, hello: ComputeHello, grant: JoinGrant): Promise<void> {
    try {
      await this.#options.enlist(hello, grant)
    } catch (error) {
      const reason = error instanceof ApiError ? error.message : 'The compute could not be registered'
      return end.close(resetCodes.forbidden, quoteText(reason))
    }
    if (await this.#isHeld(hello.compute_id, grant.key)) {
      return end.close(resetCodes.replaced, `The compute ${hello.compute_id} is connected with another token`)
    }
    if (!this.#open.has(end)) return
    this.#take(end, hello, grant.key)
    end.accept()
    this.#options.joined(hello.compute_id)
  }

  /** Whether the compute has a tunnel that was opened with another token which is still good. */
  async #isHeld(id: string, token: string): Promise<boolean> {
    for (;;) {
      const joined = this.#ends.get(computeKey(id))
      if (joined?.token === undefined || joined.token === token) return false
      const isGood = await this.#options.isGood(joined.token)
      if (isGood || this.#ends.get(computeKey(id)) === joined) return isGood
    }
  }

  #take(end: AskingEnd, { compute_id }: ComputeHello, token: string | undefined): void {
    const before = this.#ends.get(computeKey(compute_id))
    this.#ends.set(computeKey(compute_id), { end, token })
    before?.end.close(resetCodes.replaced, 'The compute has joined anew')
  }

  #ended(end: AskingEnd, reason: string): void {
    this.#open.delete(end)
    const id = end.hello?.compute_id
    if (id === undefined || this.#ends.get(computeKey(id))?.end !== end) return
    this.#ends.delete(computeKey(id))
    this.#options.left(id, quoteText(reason))
  }
}
