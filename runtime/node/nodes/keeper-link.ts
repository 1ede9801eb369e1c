import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { ignore } from '../../../src/async/ignore.ts'
import { withTimeout } from '../../../src/async/timeout.ts'
import { ApiError, conflict } from '../../../src/errors/api-error.ts'
import { reapLeftovers } from '../keeper/child-records.ts'
import { KeeperClient } from '../keeper/client.ts'
import { hasKeeper, keeperDirectory, otherKeeperDirectories } from '../keeper/generation.ts'
import { ensureKeeper } from '../keeper/launch.ts'
import { KeeperError } from '../keeper-protocol/error.ts'
import {
  type Exit,
  hasOperation,
  type Inventory,
  type Operations,
  type PacketPathName,
  type PortReport,
  protocolVersion,
  type UnitState,
} from '../keeper-protocol/protocol.ts'
import type { Log } from '../log/log.ts'
import { KeeperHold } from './keeper-hold.ts'
import { nothingPassed } from './nio-state.ts'
import { unitOf } from './slots.ts'

/** Tidying up is nothing to wait long for, ms. */
const tidyMs = 5000
/** How long a keeper may take to end when it was told to, ms. */
const endMs = 8000

/** What the nodes want to hear. */
export interface KeeperListener {
  /** A unit ended. */
  exited(key: string, run: number, exit: Exit): void
  /** A capture ended because its file cannot be written. */
  captureFailed(key: string, file: string, message: string): void
  /** A keeper died with everything in it; `isHeld` says whose units. `isOwn`: the one that starts nodes, and a new one is there. */
  lost(isHeld: (key: string) => boolean, isOwn: boolean): Promise<void>
  /** A keeper does not answer. */
  silent(why: string): void
  /** All that was not known can be asked for again. */
  answered(): Promise<void>
  /** Nodes that do not run have left an older keeper, which had their ports: these are wanted in the present one. */
  moved(keys: readonly string[]): void
}

/** A keeper of another build: it keeps its nodes until they end, and then ends itself. */
interface Older {
  readonly hold: KeeperHold
  /** Keys of the units that run there. */
  readonly running: Set<string>
  /** Settles when it is known what the keeper holds. */
  adopted: Promise<void> | undefined
  retiring: Promise<void> | undefined
}

/**
 * The service's hold on its keepers: on the one of this build, in which nodes start, and on those of other builds that hold nodes
 * since before an upgrade. A keeper that dies is replaced, and what it left behind is ended first. What a keeper that does not
 * answer holds is not known: all that needs to know it is refused with 503.
 */
export class KeeperLink {
  readonly #dataDirectory: string
  readonly #log: Log
  readonly #own: KeeperHold
  /** By their directories. */
  readonly #older = new Map<string, Older>()
  /** Who holds a node, by the key of its unit, when that is an older keeper. */
  readonly #holders = new Map<string, Older>()
  /** Units that ended in keepers that are gone, until they are forgotten. */
  readonly #ended = new Map<string, UnitState>()
  /** Resolves when the older keepers are known. */
  readonly #found: Promise<void>
  #listener: KeeperListener | undefined
  #isClosed = false
  /** Whether our keeper died, and nobody was told yet. */
  #hasLoss = false

  constructor(dataDirectory: string, log: Log) {
    this.#dataDirectory = dataDirectory
    this.#log = log
    this.#found = this.#findOlder()
    this.#own = new KeeperHold({
      directory: keeperDirectory(dataDirectory),
      connect: async (onLate) => {
        const { client, created } = await ensureKeeper(dataDirectory, { onLate })
        if (created) await this.#reap(keeperDirectory(dataDirectory))
        return client
      },
      onUp: (client) => {
        this.#listenTo(client)
        this.#tellLoss()
      },
      onTrouble: (trouble) => this.#troubled(trouble),
      onDeath: ({ pid }) => {
        log.error({ keeper: pid }, 'the keeper died; starting a new one')
        this.#hasLoss = true
        return true
      },
      onFailure: async (error) => {
        log.error({ err: error }, 'the keeper cannot be started')
        return true
      },
    })
  }

  listen(listener: KeeperListener): void {
    this.#listener = listener
  }

  /** Whether there is a keeper that answers; does not start one. */
  get isUp(): boolean {
    return this.#own.live !== undefined && this.#own.trouble === undefined
  }

  /** Why it is not known what runs; undefined when all keepers answer, as far as is known. */
  get trouble(): string | undefined {
    return this.#holds.map((hold) => hold.trouble).find((it) => it !== undefined)
  }

  /** Why the state of a node is not known; undefined when its keeper answers. Without a key: of one whose keeper is not known. */
  troubleOf(key?: string): string | undefined {
    return key === undefined ? this.trouble : this.#holdOf(key).trouble
  }

  /** Whether the ports of a node can be changed: a keeper of another protocol only lets go of them. */
  isChangeable(key: string): boolean {
    return this.#holdOf(key).live?.isFull ?? true
  }

  /** Whether two nodes are in one keeper, which can join their ports directly. */
  canJoin(one: string, other: string): boolean {
    const hold = this.#holdOf(one)
    return hold === this.#holdOf(other) && hasOperation(hold.live?.protocol ?? protocolVersion, 'link.join')
  }

  /** The keeper of a node, to tell nodes of different ones apart. */
  holderOf(key: string): object {
    return this.#holdOf(key)
  }

  /**
   * One operation of the keeper that holds the node. Rejects with KeeperError for its refusals, with a 503 when it does not answer,
   * with a 409 when it ends, cannot be started, or does not have the operation.
   */
  async call<Op extends keyof Operations>(
    op: Op,
    input: Operations[Op]['in'],
    ms?: number,
  ): Promise<Operations[Op]['out']> {
    const named = 'key' in input ? input.key : 'links' in input ? input.links[0]?.ports[0] : undefined
    const key = named === undefined ? undefined : unitOf(named)
    if (op === 'unit.forget' && key !== undefined && this.#ended.delete(key)) return {} as Operations[Op]['out']
    if (op === 'port.report' && key === undefined) return { ports: await this.#reports(ms) } as Operations[Op]['out']
    const older = key === undefined ? undefined : this.#holders.get(key)
    if (older === undefined || key === undefined) return this.#ask(this.#own, op, input, ms)
    if (op === 'unit.start') throw new KeeperError('exists', `${key} runs in an older keeper`)
    if (op === 'port.report' && !this.isChangeable(key))
      return { ports: [unknownReport((input as { key: string }).key)] } as Operations[Op]['out']
    const result = await this.#ask(older.hold, op, input, ms)
    if (op === 'unit.stop' || op === 'unit.forget') {
      await this.#left(older, key).catch((error: unknown) => {
        this.#log.error(
          { err: error, unit: key },
          'what an older keeper has of a node that ended is left there for now',
        )
      })
    }
    return result
  }

  /** What all keepers hold. Rejects when one of them cannot say it. */
  async inventory(): Promise<Inventory> {
    await this.#found
    await Promise.all(
      [...this.#older.values()].map(async (older) => {
        await this.#adopted(older)
        if (older.running.size === 0) await this.#retire(older)
      }),
    )
    const parts = await Promise.all(this.#holds.map((hold) => this.#ask(hold, 'inventory', {})))
    const units = new Map(this.#ended)
    for (const unit of parts.flatMap((part) => part.units)) {
      if (unit.exit === null || !units.has(unit.key)) units.set(unit.key, unit)
    }
    const links = parts.flatMap((part) => part.links ?? [])
    return { units: [...units.values()], ports: parts.flatMap((part) => part.ports), links }
  }

  /** What is known of a run of a unit; undefined when nothing is, or the keeper cannot be asked. */
  async unit(key: string, run: number | undefined): Promise<UnitState | undefined> {
    const inventory = await this.inventory().catch(() => undefined)
    return inventory?.units.find((unit) => unit.key === key && unit.run === run)
  }

  /** Before a node starts: what an older keeper has of it goes, so that it starts in the present one. */
  async bring(key: string): Promise<void> {
    const older = this.#holders.get(key)
    if (older !== undefined && !older.running.has(key)) await this.#release(older, key, true)
  }

  /** Removes what an IOU instance that has ended left of its sockets, as far as that can be done. */
  async tidyNetio(application_id: number): Promise<void> {
    const tidy = () => this.call('netio.tidy', { application_id }, tidyMs)
    // The keeper may have just ended as well: then there is another one.
    await tidy().catch(tidy).catch(ignore('the next instance with this id tidies up, too'))
  }

  async attachConsole(key: string): Promise<Socket> {
    return this.#with(this.#holdOf(key), (client) => client.attachConsole(key))
  }

  async attachCapture(wanted: Operations['capture.attach']['in']): Promise<Socket> {
    return this.#with(this.#holdOf(unitOf(wanted.key)), (client) => client.attachCapture(wanted))
  }

  /** How the switch moves frames. */
  async packetPath(): Promise<PacketPathName> {
    return this.#with(this.#own, async (client) => client.packetPath)
  }

  /** `stop` ends the keepers and all that runs in them; otherwise they go on without us. */
  async close({ stop }: { stop: boolean }): Promise<void> {
    this.#isClosed = true
    await this.#found
    await Promise.all(
      this.#holds.map(async (hold) => {
        const client = await hold.ready().catch(() => undefined)
        hold.end()
        if (client === undefined) return
        if (stop) await end(client, 3000).catch(ignore('a keeper that does not end politely loses its connection'))
        client.disconnect()
        await client.closed
      }),
    )
  }

  get #holds(): KeeperHold[] {
    return [this.#own, ...[...this.#older.values()].map(({ hold }) => hold)]
  }

  #holdOf(key: string): KeeperHold {
    return this.#holders.get(key)?.hold ?? this.#own
  }

  async #with<T>(hold: KeeperHold, run: (client: KeeperClient) => Promise<T>): Promise<T> {
    const client = await hold.ready().catch((cause: Error) => {
      if (keeperErrorCode(cause) === 'no_answer' || keeperErrorCode(cause) === 'protocol') throw unknownState(cause)
      throw conflict(`The keeper of the nodes cannot be started: ${cause.message}`, { cause })
    })
    return run(client).catch(failed)
  }

  #ask<Op extends keyof Operations>(
    hold: KeeperHold,
    op: Op,
    input: Operations[Op]['in'],
    ms?: number,
  ): Promise<Operations[Op]['out']> {
    return this.#with(hold, (client) => client.call(op, input, ms))
  }

  /** Of all ports; those of older keepers as far as they say it. */
  async #reports(ms: number | undefined): Promise<PortReport[]> {
    const older = [...this.#older.values()].map(({ hold }) =>
      this.#ask(hold, 'port.report', {}, ms).catch(() => ({ ports: [] })),
    )
    const parts = await Promise.all([this.#ask(this.#own, 'port.report', {}, ms), ...older])
    return parts.flatMap(({ ports }) => ports)
  }

  async #findOlder(): Promise<void> {
    const directories = otherKeeperDirectories(this.#dataDirectory)
    await Promise.all(
      directories.map(async (directory) => {
        // One that cannot be looked at may hold nodes.
        if (await hasKeeper(directory).catch(() => true)) this.#holdOlder(directory)
        else await this.#clear(directory)
      }),
    )
  }

  #holdOlder(directory: string): void {
    const older: Older = {
      running: new Set(),
      adopted: undefined,
      retiring: undefined,
      hold: new KeeperHold({
        directory,
        connect: (onLate) => KeeperClient.open(directory, onLate),
        onUp: (client) => {
          this.#log.info({ keeper: client.pid, version: client.version }, 'a keeper of another build holds nodes')
          this.#listenTo(client, older)
        },
        onTrouble: (trouble) => this.#troubled(trouble),
        onDeath: () => {
          void this.#lost(older).catch((error: unknown) => this.#log.error({ err: error }, 'after the end of a keeper'))
          return false
        },
        onFailure: async () => {
          if (await hasKeeper(directory).catch(() => false)) return true
          await this.#lost(older)
          return false
        },
      }),
    }
    this.#older.set(directory, older)
  }

  #adopted(older: Older): Promise<void> {
    older.adopted ??= this.#adopt(older).catch((error: unknown) => {
      older.adopted = undefined
      throw error
    })
    return older.adopted
  }

  /** Learns what an older keeper holds. Nodes that do not run leave it, but for those with a port that is captured. */
  async #adopt(older: Older): Promise<void> {
    const { units, ports } = await this.#ask(older.hold, 'inventory', {})
    for (const unit of units) {
      if (unit.exit !== null) {
        this.#ended.set(unit.key, unit)
        await this.#ask(older.hold, 'unit.forget', { key: unit.key })
        continue
      }
      older.running.add(unit.key)
      this.#holders.set(unit.key, older)
    }
    if (older.running.size === 0) return this.#retire(older)
    for (const { key, capture } of ports) {
      const unit = unitOf(key)
      if (older.running.has(unit)) continue
      if (capture != null) this.#holders.set(unit, older)
      else await this.#ask(older.hold, 'port.close', { key })
    }
  }

  /** A unit of an older keeper has ended, and that was taken up. */
  async #left(older: Older, key: string): Promise<void> {
    older.running.delete(key)
    if (older.running.size === 0) await this.#retire(older)
    else await this.#release(older, key, false)
  }

  /** Has an older keeper close the ports of a node that does not run; `always`: also those that are captured. */
  async #release(older: Older, key: string, always: boolean): Promise<void> {
    const { ports } = await this.#ask(older.hold, 'inventory', {})
    const ours = ports.filter((port) => unitOf(port.key) === key)
    if (!always && ours.some(({ capture }) => capture != null)) return
    for (const { key: port, capture } of ours) {
      if (capture != null) this.#listener?.captureFailed(port, capture.file, 'the node moved to a new keeper')
      await this.#ask(older.hold, 'port.close', { key: port })
    }
    this.#holders.delete(key)
    this.#listener?.moved([key])
  }

  /** The last unit of an older keeper has ended: so does the keeper. */
  #retire(older: Older): Promise<void> {
    older.retiring ??= this.#retireNow(older)
    return older.retiring
  }

  async #retireNow(older: Older): Promise<void> {
    const { hold } = older
    await this.#with(hold, async (client) => {
      const { units, ports } = await client.call('inventory', {})
      for (const unit of units) this.#ended.set(unit.key, unit)
      for (const { key, capture } of ports)
        if (capture != null) this.#listener?.captureFailed(key, capture.file, 'its keeper, of before an upgrade, ended')
      await end(client, 0)
      hold.end()
      client.disconnect()
      this.#drop(older)
      await this.#clear(hold.directory)
      this.#log.info({ keeper: client.pid, version: client.version }, 'the keeper of another build has ended')
      this.#listener?.moved([...new Set(ports.map(({ key }) => unitOf(key)))])
    }).catch((error: unknown) => {
      older.retiring = undefined
      throw error
    })
  }

  #drop(older: Older): void {
    this.#older.delete(older.hold.directory)
    for (const [key, holder] of this.#holders) if (holder === older) this.#holders.delete(key)
  }

  /** An older keeper died with what ran in it. */
  async #lost(older: Older): Promise<void> {
    if (this.#isClosed || older.retiring !== undefined) return
    this.#log.error({ directory: older.hold.directory }, 'a keeper of another build died')
    const held = new Set([...this.#holders].filter(([, holder]) => holder === older).map(([key]) => key))
    this.#drop(older)
    await this.#clear(older.hold.directory)
    await this.#listener?.lost((key) => held.has(key), false)
  }

  /** Ends what a keeper that is gone left running, and removes its directory. */
  async #clear(directory: string): Promise<void> {
    try {
      await this.#reap(directory)
      const isFirst = directory === join(this.#dataDirectory, 'run')
      const paths = isFirst ? ['keeper.sock', 'children'].map((name) => join(directory, name)) : [directory]
      for (const path of paths) await rm(path, { recursive: true, force: true })
    } catch (error) {
      this.#log.error({ err: error, directory }, 'what a keeper left cannot be removed')
    }
  }

  #listenTo(client: KeeperClient, older?: Older): void {
    client.onExit = (key, run, exit) => this.#listener?.exited(key, run, exit)
    client.onCaptureFailed = ({ key, file, message }) => {
      if (older?.retiring === undefined) this.#listener?.captureFailed(key, file, message)
    }
  }

  #troubled(trouble: string | undefined): void {
    if (this.#isClosed) return
    if (trouble !== undefined) {
      this.#log.error({ reason: trouble }, 'it is not known what a keeper holds')
      this.#listener?.silent(trouble)
    } else if (this.trouble === undefined) {
      this.#listener
        ?.answered()
        .catch((error: unknown) => this.#log.error({ err: error }, 'after a keeper answered again'))
    }
  }

  /** Before anything is asked of the new keeper, however often one could not be started in between. */
  #tellLoss(): void {
    if (!this.#hasLoss) return
    this.#hasLoss = false
    this.#listener
      ?.lost((key) => !this.#holders.has(key), true)
      .catch((error: unknown) => this.#log.error({ err: error }, 'after the end of a keeper'))
  }

  async #reap(directory: string): Promise<void> {
    if (!existsSync(join(directory, 'children'))) return
    const ended = await reapLeftovers(directory)
    if (ended.length > 0) this.#log.warn({ units: ended }, 'ended what a killed keeper had left running')
  }
}

/** Ends a keeper, and waits for that in bounds. */
async function end(client: KeeperClient, graceMs: number): Promise<void> {
  await client.call('shutdown', { grace_ms: graceMs }).catch((error: unknown) => {
    // It may have gone before its answer did.
    if (keeperErrorCode(error) !== 'internal') throw error
  })
  await withTimeout(client.closed, endMs, () => {})
}

/** A keeper that ended is nothing that callers can act on: the client is told, and may try again. */
function failed(error: unknown): never {
  const cause = error as Error
  switch (keeperErrorCode(error)) {
    case 'no_answer':
      throw unknownState(cause)
    case 'other_version':
      throw conflict(`${cause.message}: stop the node and start it again to change it`, { cause })
    case 'internal':
      throw conflict(`${cause.message}; try again`, { cause })
    default:
      throw error
  }
}

const retryAfterSeconds = '5'

/** What needs to know what runs, while that is not known. */
export const unknownState = (cause: Error): ApiError =>
  new ApiError(503, `What runs is not known: ${cause.message}; nothing was changed, try again`, {
    cause,
    headers: { 'Retry-After': retryAfterSeconds },
  })

/** The link of a port in a keeper of another protocol, of which nothing is known. */
const unknownReport = (key: string): PortReport => ({
  key,
  link: 'silent',
  counters: nothingPassed.counters,
  capture: null,
})

/** The code of a keeper's refusal. */
export const keeperErrorCode = (error: unknown): string | undefined =>
  error instanceof KeeperError ? error.code : undefined
