import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { conflict } from '../../../src/errors.ts'
import { reapLeftovers } from '../keeper/child-records.ts'
import type { KeeperClient } from '../keeper/client.ts'
import { KeeperError } from '../keeper/error.ts'
import { ensureKeeper } from '../keeper/launch.ts'
import type { Exit, Inventory, Operations, PacketPathName, UnitState } from '../keeper/protocol.ts'
import type { Log } from '../log.ts'

/** Tidying up is nothing to wait long for, ms. */
const tidyMs = 5000

/** When a new keeper is tried after the end of one, ms; after that by the next operation. */
const retriesMs = [1000, 5000, 30_000]

/** What the nodes want to hear. */
export interface KeeperListener {
  /** A unit ended. */
  exited(key: string, run: number, exit: Exit): void
  /** A capture ended because its file cannot be written. */
  captureFailed(key: string, file: string, message: string): void
  /** The keeper died with everything in it, and a new one is there. */
  lost(): Promise<void>
}

/**
 * The service's hold on the keeper: connected at once, and again with a new keeper when it dies. What a dead keeper left
 * behind is ended before a new one is used.
 */
export class KeeperLink {
  readonly #dataDirectory: string
  readonly #log: Log
  #client: Promise<KeeperClient>
  /** The one whose connection stands. */
  #live: KeeperClient | undefined
  #listener: KeeperListener | undefined
  #isClosed = false
  /** Whether a keeper died, and nobody was told yet. */
  #hasLoss = false

  constructor(dataDirectory: string, log: Log) {
    this.#dataDirectory = dataDirectory
    this.#log = log
    this.#client = this.#connecting()
  }

  listen(listener: KeeperListener): void {
    this.#listener = listener
  }

  /** Whether there is a keeper now; does not start one. */
  get isUp(): boolean {
    return this.#live !== undefined
  }

  /** One operation of the keeper. Rejects with KeeperError for its refusals, with a 409 when there is no keeper, or it fails. */
  async call<Op extends keyof Operations>(
    op: Op,
    input: Operations[Op]['in'],
    ms?: number,
  ): Promise<Operations[Op]['out']> {
    const client = await this.#connected()
    return client.call(op, input, ms).catch(failed)
  }

  async inventory(): Promise<Inventory> {
    return this.call('inventory', {})
  }

  /** What it knows of a run of a unit; undefined when it knows nothing, or cannot be asked. */
  async unit(key: string, run: number | undefined): Promise<UnitState | undefined> {
    const inventory = await this.inventory().catch(() => undefined)
    return inventory?.units.find((unit) => unit.key === key && unit.run === run)
  }

  /** Removes what an IOU instance that has ended left of its sockets, as far as that can be done. */
  async tidyNetio(application_id: number): Promise<void> {
    const tidy = () => this.call('netio.tidy', { application_id }, tidyMs)
    // The keeper may have just ended as well: then there is another one.
    await tidy()
      .catch(tidy)
      .catch(() => {})
  }

  async attachConsole(key: string): Promise<Socket> {
    const client = await this.#connected()
    return client.attachConsole(key).catch(failed)
  }

  async attachCapture(wanted: Operations['capture.attach']['in']): Promise<Socket> {
    const client = await this.#connected()
    return client.attachCapture(wanted).catch(failed)
  }

  /** How the switch moves frames. */
  async packetPath(): Promise<PacketPathName> {
    return (await this.#connected()).packetPath
  }

  /** `stop` ends the keeper and all that runs in it; otherwise it goes on without us. */
  async close({ stop }: { stop: boolean }): Promise<void> {
    this.#isClosed = true
    const client = await this.#client.catch(() => undefined)
    if (client === undefined) return
    if (stop) {
      await client.call('shutdown', { grace_ms: 3000 }).catch(() => {})
      await client.closed
    }
    client.disconnect()
  }

  async #connected(): Promise<KeeperClient> {
    const client = this.#client
    try {
      return await client
    } catch {
      // A failed start is tried again by the next operation that needs it, once for all that wait.
      if (this.#client === client) this.#client = this.#connecting()
      try {
        return await this.#client
      } catch (cause) {
        throw conflict(`The keeper of the nodes cannot be started: ${(cause as Error).message}`, {
          cause: cause as Error,
        })
      }
    }
  }

  /** Nobody may wait for it when it fails. */
  #connecting(): Promise<KeeperClient> {
    const client = this.#connect()
    client.catch(() => {})
    return client
  }

  async #connect(): Promise<KeeperClient> {
    const { client, created } = await ensureKeeper(this.#dataDirectory)
    if (created) await this.#reap()
    client.onExit = (key, run, exit) => this.#listener?.exited(key, run, exit)
    client.onCaptureFailed = ({ key, file, message }) => this.#listener?.captureFailed(key, file, message)
    this.#live = client
    void client.closed.then(() => {
      if (this.#live === client) this.#live = undefined
      return this.#replace(client)
    })
    this.#tellLoss()
    return client
  }

  async #replace(dead: KeeperClient): Promise<void> {
    if (this.#isClosed) return
    this.#log.error({ keeper: dead.pid }, 'the keeper died; starting a new one')
    this.#hasLoss = true
    this.#client = this.#connecting()
    for (const ms of retriesMs) {
      try {
        await this.#client
        return
      } catch (error) {
        this.#log.error({ err: error }, 'the keeper cannot be started again')
      }
      await delay(ms)
      if (this.#isClosed) return
      // An operation may have been quicker.
      if (this.#live === undefined) this.#client = this.#connecting()
    }
  }

  /** Before anything is asked of the new keeper, however often one could not be started in between. */
  #tellLoss(): void {
    if (!this.#hasLoss) return
    this.#hasLoss = false
    this.#listener?.lost().catch((error: unknown) => this.#log.error({ err: error }, 'after the end of a keeper'))
  }

  async #reap(): Promise<void> {
    const ended = await reapLeftovers(join(this.#dataDirectory, 'run'))
    if (ended.length > 0) this.#log.warn({ units: ended }, 'ended what a killed keeper had left running')
  }
}

/** A keeper that ended or hangs is nothing that callers can act on: the client is told, and may try again. */
function failed(error: unknown): never {
  if (refusal(error) !== 'internal') throw error
  throw conflict(`${(error as Error).message}; try again`, { cause: error as Error })
}

/** The code of a keeper's refusal. */
export const refusal = (error: unknown): string | undefined => (error instanceof KeeperError ? error.code : undefined)
