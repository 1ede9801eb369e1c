import { setTimeout as delay } from 'node:timers/promises'
import { ignore } from '../../../src/async/ignore.ts'
import { hangs, type KeeperClient } from '../keeper/client.ts'
import { KeeperError } from '../keeper-protocol/error.ts'

/** When another try is made to connect to a keeper, ms; the last one again and again. */
const retriesMs = [1000, 5000, 30_000]

export interface HoldOptions {
  /** Where the keeper is. */
  readonly directory: string
  /** Connects, and waits for a keeper that hangs after it told of that. */
  readonly connect: (onLate: () => void) => Promise<KeeperClient>
  /** The keeper answers: called before anything else is asked of it. */
  readonly onUp: (client: KeeperClient) => void
  /** It does not answer, or does again. */
  readonly onTrouble: (trouble: string | undefined) => void
  /** The connection has ended, and so has the keeper. True: another one is wanted. */
  readonly onDeath: (client: KeeperClient) => boolean
  /** It cannot be connected to. False: it is not wanted any more. */
  readonly onFailure: (error: Error) => Promise<boolean>
}

/** The service's connection to one keeper. What a keeper that does not answer holds is not known, and nothing of it is changed. */
export class KeeperHold {
  readonly directory: string
  readonly #options: HoldOptions
  #live: KeeperClient | undefined
  #connecting: Promise<KeeperClient> | undefined
  /** Rejects when the keeper hangs that is being connected to. */
  #late: Promise<never> = new Promise(() => {})
  #trouble: string | undefined
  readonly #over = new AbortController()
  #failures = 0

  constructor(options: HoldOptions) {
    this.#options = options
    this.directory = options.directory
    void this.#connect()
  }

  /** Why nothing can be known of what the keeper holds; undefined: it answers, as far as is known. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /** The keeper whose connection stands. */
  get live(): KeeperClient | undefined {
    return this.#live
  }

  /** The keeper when it answers. Rejects with `no_answer` when it hangs, within 5 s, and with the reason when there is none. */
  async ready(): Promise<KeeperClient> {
    if (this.#live !== undefined) return this.#live
    if (this.#over.signal.aborted) throw new KeeperError('internal', 'the keeper has ended')
    const connecting = this.#connecting ?? this.#connect()
    return Promise.race([connecting, this.#late])
  }

  /** Connects no more; the connection that stands is left to who asked for the end. */
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
    // An operation may have been quicker.
    if (!this.#over.signal.aborted && this.#live === undefined && this.#connecting === undefined) void this.#connect()
  }

  #setTrouble(trouble: string | undefined): void {
    if (this.#trouble === trouble) return
    this.#trouble = trouble
    this.#options.onTrouble(trouble)
  }
}
