import { quoteText } from '../../compute/remote/answer.ts'
import type { SocketTransport, Transport } from '../../compute/remote/transport.ts'
import { AskingEnd, type AskingOptions } from '../../compute/tunnel/asking.ts'
import { resetCodes } from '../../compute/tunnel/frames.ts'
import type { TunnelWire } from '../../compute/tunnel/outbox.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { ComputeHello } from '../../model/tunnel.ts'
import { computeKey } from './computes.ts'
import type { JoinGrant } from './join-tokens.ts'

/** Why requests to a joining compute fail before its tunnel opens. */
export const notJoined = 'it has not joined'

/** Most websockets of one token that have not been taken or refused yet. A compute has one, or two when its connection was lost. */
const maxAwaiting = 8
/** The service is too busy; the compute tries again (RFC 6455, 7.4.1, IANA registry). */
const tryAgainLater = 1013

export interface TunnelsOptions extends Pick<AskingOptions, 'version' | 'limits' | 'timeouts' | 'watch' | 'later'> {
  /** Registers the compute unless it is known, and binds the token to it; rejects when this is not possible. */
  readonly registerJoined: (hello: ComputeHello, grant: JoinGrant) => Promise<void>
  /** Whether the token with this key is still valid. */
  readonly isGood: (token: string) => Promise<boolean>
  /** Called when the tunnel of a compute opens or closes. */
  readonly joined: (id: string) => void
  readonly left: (id: string, reason: string) => void
}

/** The state that another process needs to resume a tunnel. */
export interface KeptTunnel {
  readonly hello: ComputeHello
  /** The key of the token that opened the tunnel. */
  readonly token?: string
  /** From where it was opened. */
  readonly address?: string
}

interface Joined {
  readonly end: AskingEnd
  /** Undefined: an earlier version did not store it. */
  readonly token: string | undefined
  /** From where the tunnel was opened; undefined where the runtime does not report it. */
  readonly address: string | undefined
}

/** The tunnels of a fleet, wherever they are held. */
export interface TunnelHolder {
  readonly transport: Transport
  readonly sockets: SocketTransport
  /** Whether the compute has a tunnel, as far as is known. */
  has(id: string): boolean
  /** The address from which a compute has joined, as this service sees it; undefined where that is not known. */
  addressOf(id: string): string | undefined
  /** Ends the tunnel of a removed compute. */
  unregister(id: string): void
  close(): void
}

/**
 * The tunnels of joined computes. Each compute has one: the newest with its token. A tunnel with another token replaces an open
 * tunnel only when the token of the open tunnel is no longer valid.
 */
export class Tunnels implements TunnelHolder {
  readonly #options: TunnelsOptions
  readonly #ends = new Map<string, Joined>()
  /** All open tunnels, also those before the greeting. */
  readonly #open = new Set<AskingEnd>()
  /** Those that have not been taken or refused yet, by the key of their token. */
  readonly #awaiting = new Map<string, Set<AskingEnd>>()

  constructor(options: TunnelsOptions) {
    this.#options = options
  }

  /** Sends requests to a compute by its tunnel. */
  readonly transport: Transport =
    ({ compute_id }) =>
    async (request) =>
      this.#endOf(compute_id).send(request)

  /** Opens websockets by the tunnel. */
  readonly sockets: SocketTransport =
    ({ compute_id }) =>
    async (request) =>
      this.#endOf(compute_id).openSocket(request)

  has(id: string): boolean {
    return this.#ends.has(computeKey(id))
  }

  addressOf(id: string): string | undefined {
    return this.#ends.get(computeKey(id))?.address
  }

  #endOf(id: string): AskingEnd {
    const joined = this.#ends.get(computeKey(id))
    if (joined === undefined) throw new Error(notJoined)
    return joined.end
  }

  /** The endpoint for a websocket with a valid token; the caller passes it messages and the close. `address`: of the other end. */
  accept(wire: TunnelWire, grant: JoinGrant, address?: string): AskingEnd {
    const { key } = grant
    const awaiting = this.#awaiting.get(key) ?? new Set()
    this.#awaiting.set(key, awaiting)
    const settle = () => {
      awaiting.delete(end)
      if (awaiting.size === 0 && this.#awaiting.get(key) === awaiting) this.#awaiting.delete(key)
    }
    let isGreeted = false
    const end: AskingEnd = new AskingEnd({
      ...this.#options,
      wire,
      greeted: (hello) => {
        isGreeted = true
        const greeted = this.#greeted(end, hello, grant, address).then(() => {
          if (!end.isOpen) return
          wire.keep?.({ hello, token: key, ...(address !== undefined && { address }) } satisfies KeptTunnel)
        })
        void greeted.finally(settle)
      },
      ended: ({ reason }) => {
        // After the HELLO the tunnel stays counted until `registerJoined` has ended.
        if (!isGreeted) settle()
        this.#ended(end, reason)
      },
    })
    this.#open.add(end)
    const isTooMany = awaiting.size >= maxAwaiting
    awaiting.add(end)
    if (isTooMany) end.close(tryAgainLater, 'Too many connections are being opened with this token')
    return end
  }

  /** The endpoint for a websocket that an earlier process accepted. */
  resume(wire: TunnelWire, { hello: resumed, token, address }: KeptTunnel): AskingEnd {
    const end: AskingEnd = new AskingEnd({
      ...this.#options,
      wire,
      resumed,
      ended: ({ reason }) => this.#ended(end, reason),
    })
    this.#open.add(end)
    this.#register(end, resumed, { token, address })
    this.#options.joined(resumed.compute_id)
    return end
  }

  unregister(id: string): void {
    this.#ends.get(computeKey(id))?.end.close(resetCodes.removed, 'The compute was removed')
  }

  close(): void {
    for (const end of this.#open) end.close(1001, 'The service is shutting down')
  }

  async #greeted(end: AskingEnd, hello: ComputeHello, grant: JoinGrant, address?: string): Promise<void> {
    try {
      await this.#options.registerJoined(hello, grant)
    } catch (error) {
      const reason = error instanceof ApiError ? error.message : 'The compute could not be registered'
      return end.close(resetCodes.forbidden, quoteText(reason))
    }
    let isHeld: boolean
    try {
      isHeld = await this.#isHeld(hello.compute_id, grant.key)
    } catch {
      return end.close(tryAgainLater, 'The token of the open connection of this compute could not be checked')
    }
    if (isHeld) {
      return end.close(resetCodes.replaced, `The compute ${hello.compute_id} is connected with another token`)
    }
    if (!this.#open.has(end)) return
    this.#register(end, hello, { token: grant.key, address })
    end.accept()
    this.#options.joined(hello.compute_id)
  }

  /** Whether the compute has a tunnel with another token that is still valid. */
  async #isHeld(id: string, token: string): Promise<boolean> {
    for (;;) {
      const joined = this.#ends.get(computeKey(id))
      if (joined?.token === undefined || joined.token === token) return false
      const isGood = await this.#options.isGood(joined.token)
      if (isGood || this.#ends.get(computeKey(id)) === joined) return isGood
    }
  }

  #register(end: AskingEnd, { compute_id }: ComputeHello, opened: Omit<Joined, 'end'>): void {
    const before = this.#ends.get(computeKey(compute_id))
    this.#ends.set(computeKey(compute_id), { end, ...opened })
    before?.end.close(resetCodes.replaced, 'The compute has joined again')
  }

  #ended(end: AskingEnd, reason: string): void {
    this.#open.delete(end)
    const id = end.hello?.compute_id
    if (id === undefined || this.#ends.get(computeKey(id))?.end !== end) return
    this.#ends.delete(computeKey(id))
    this.#options.left(id, quoteText(reason))
  }
}
