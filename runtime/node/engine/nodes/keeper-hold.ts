import { setTimeout as delay } from 'node:timers/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { hangs, type KeeperClient } from '../../keeper/client/client.ts'
import { KeeperError } from '../../keeper/protocol/error.ts'

/** Backoff of the attempts to connect, ms; the last delay repeats. */
const retriesMs = [1000, 5000, 30_000]

export interface HoldOptions {
  /** Directory of the keeper. */
  readonly directory: string
  /** Connects. If the keeper hangs, calls `onLate` and keeps waiting. */
  readonly connect: (onLate: () => void) => Promise<KeeperClient>
  /** Called when the keeper answers, before the first operation. */
  readonly onUp: (client: KeeperClient) => void
  /** Called when the keeper stops answering, and (undefined) when it answers again. */
  readonly onTrouble: (trouble: string | undefined) => void
  /** Called when the keeper has ended. Returns whether to connect to a new one. */
  readonly onDeath: (client: KeeperClient) => boolean
  /** Called when the connection fails. Returns whether to try again. */
  readonly onFailure: (error: Error) => Promise<boolean>
}

/** The service's connection to one keeper. While the keeper does not answer, the state of its nodes is unknown. */
export class KeeperHold {
  readonly directory: string
  readonly #options: HoldOptions
  #live: KeeperClient | undefined
  #connecting: Promise<KeeperClient> | undefined
  /** Rejects when the keeper hangs during the connect. */
  #late: Promise<never> = new Promise(() => {})
  #trouble: string | undefined
  readonly #over = new AbortController()
  #failures = 0

  constructor(options: HoldOptions) {
    this.#options = options
    this.directory = options.directory
    void this.#connect()
  }

  /** Why the state of the keeper's nodes is unknown; undefined when the keeper answers. */
  get unknownReason(): string | undefined {
    return this.#trouble
  }

  /** The client of the open connection. */
  get live(): KeeperClient | undefined {
    return this.#live
  }

  /** Resolves with the client when the keeper answers. Rejects with `no_answer` after 5 s when it hangs, or with its failure. */
  async ready(): Promise<KeeperClient> {
    if (this.#live !== undefined) return this.#live
    if (this.#over.signal.aborted) throw new KeeperError('internal', 'the keeper has ended')
    const connecting = this.#connecting ?? this.#connect()
    return Promise.race([connecting, this.#late])
  }

  /** Stops reconnecting. The caller closes the open connection. */
  end(): void {
    this.#over.abort()
  }

  #connect(): Promise<KeeperClient> {
    let tellLate: (error: Error) => void = () => {}
    this.#late = new Promise((_, reject) => {
      tellLate = reject
    })
    this.#late.catch(ignore('it is raced against where an answer is awaited'))
    const connecting = this.#options.connect(() => {
      this.#setTrouble(hangs)
      tellLate(new KeeperError('no_answer', hangs))
    })
    this.#connecting = connecting
    connecting.then(
      (client) => this.#up(client),
      (error: Error) => this.#failed(error),
    )
    return connecting
  }

  #up(client: KeeperClient): void {
    this.#connecting = undefined
    if (this.#over.signal.aborted) return client.disconnect()
    this.#failures = 0
    this.#live = client
    client.onSilence = (isSilent) => this.#setTrouble(isSilent ? hangs : undefined)
    void client.closed.then(() => this.#died(client))
    this.#options.onUp(client)
    this.#setTrouble(undefined)
  }

  #died(client: KeeperClient): void {
    if (this.#live === client) this.#live = undefined
    if (this.#over.signal.aborted) return
    if (this.#options.onDeath(client)) {
      if (this.#connecting === undefined) void this.#connect()
    } else {
      this.end()
      this.#setTrouble(undefined)
    }
  }

  async #failed(error: Error): Promise<void> {
    this.#connecting = undefined
    if (this.#over.signal.aborted) return
    if (!(await this.#options.onFailure(error))) return this.end()
    this.#setTrouble(error.message)
    const ms = retriesMs[Math.min(this.#failures++, retriesMs.length - 1)]
    await delay(ms, undefined, { ref: false, signal: this.#over.signal }).catch(
      ignore('it was aborted, as the next line sees'),
    )
    // An operation may have connected meanwhile.
    if (!this.#over.signal.aborted && this.#live === undefined && this.#connecting === undefined) void this.#connect()
  }

  #setTrouble(trouble: string | undefined): void {
    if (this.#trouble === trouble) return
    this.#trouble = trouble
    this.#options.onTrouble(trouble)
  }
}
