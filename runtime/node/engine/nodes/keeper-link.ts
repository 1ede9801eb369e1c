import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { ApiError, conflict } from '../../../../src/lib/errors/api-error.ts'
import type { KeeperClient } from '../../keeper/client/client.ts'
import { ensureKeeper, openKeeper } from '../../keeper/client/launch.ts'
import { reapLeftovers } from '../../keeper/process/child-records.ts'
import { hasKeeper, keeperDirectory, otherKeeperDirectories } from '../../keeper/process/generation.ts'
import { KeeperError } from '../../keeper/protocol/error.ts'
import {
  type Exit,
  hasOperation,
  type Inventory,
  type KeeperErrorCode,
  type KeeperEvents,
  type Operations,
  type PacketPathName,
  type PortReport,
  protocolVersion,
  type UnitState,
} from '../../keeper/protocol/protocol.ts'
import type { Log } from '../../os/log/log.ts'
import { KeeperHold } from './keeper-hold.ts'
import { nothingPassed } from './nio-state.ts'
import { unitOf } from './slots.ts'

/** Timeout of `netio.tidy`, ms. */
const tidyMs = 5000
/** Timeout for a keeper to end after a shutdown, ms. */
const endMs = 8000

/** The events of keepers. */
export interface KeeperListener {
  /** A unit ended. */
  onUnitExit(key: string, run: number, exit: Exit): void
  /** A capture ended because its file cannot be written. */
  captureFailed(key: string, file: string, message: string): void
  /** Frames go in a circle through a switch. */
  looped?(loop: KeeperEvents['bridge.looped']): void
  /** A keeper died with its units, those for which `isHeld` is true. `isOwn`: it is the keeper of this build, and a new one runs. */
  onKeeperDeath(isHeld: (key: string) => boolean, isOwn: boolean): Promise<void>
  /** A keeper does not answer. */
  onUnresponsive(why: string): void
  /** All keepers answer again. */
  answered(): Promise<void>
  /** Stopped nodes have left an older keeper, which had their ports: the keeper of this build must open these ports. */
  moved(keys: readonly string[]): void
}

/** A keeper of another build: it keeps its nodes until they end, and then ends itself. */
interface Older {
  readonly hold: KeeperHold
  /** Keys of the units that run there. */
  readonly running: Set<string>
  /** Settles when the inventory of the keeper is known. */
  adopted: Promise<void> | undefined
  retiring: Promise<void> | undefined
}

/**
 * The keepers of the service: the keeper of this build, in which nodes start, and keepers of other builds that have run nodes since
 * before an upgrade. A keeper that dies is replaced, after its orphans were ended. While a keeper does not answer, operations on its
 * nodes fail with 503.
 */
export class KeeperLink {
  readonly #dataDirectory: string
  readonly #log: Log
  readonly #own: KeeperHold
  /** By directory. */
  readonly #older = new Map<string, Older>()
  /** The older keeper of a node, by the key of its unit. */
  readonly #holders = new Map<string, Older>()
  /** Ended units of older keepers, until `unit.forget`. */
  readonly #ended = new Map<string, UnitState>()
  /** Resolves when the older keepers are known. */
  readonly #found: Promise<void>
  #listener: KeeperListener | undefined
  #isClosed = false
  /** Whether the keeper of this build died, and the listener was not called yet. */
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
        this.#reportLoss()
      },
      onTrouble: (trouble) => this.#setUnknownReason(trouble),
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

  /** Whether the keeper of this build answers; starts none. */
  get isUp(): boolean {
    return this.#own.live !== undefined && this.#own.unknownReason === undefined
  }

  /** Why the state of some nodes is unknown; undefined when all keepers answer. */
  get unknownReason(): string | undefined {
    return this.#holds.map((hold) => hold.unknownReason).find((it) => it !== undefined)
  }

  /** Why the state of a node is unknown; undefined when its keeper answers. Without a key: of a node whose keeper is unknown. */
  troubleOf(key?: string): string | undefined {
    return key === undefined ? this.unknownReason : this.#holdOf(key).unknownReason
  }

  /** Whether the ports of a node can be changed: a keeper of another protocol can only close them. */
  isChangeable(key: string): boolean {
    return this.#holdOf(key).live?.isFull ?? true
  }

  /** Whether two nodes are in one keeper, which can join their ports directly. */
  canJoin(one: string, other: string): boolean {
    const hold = this.#holdOf(one)
    return hold === this.#holdOf(other) && hasOperation(hold.live?.protocol ?? protocolVersion, 'link.join')
  }

  /** The keeper of a node, to distinguish nodes of different keepers. */
  holderOf(key: string): object {
    return this.#holdOf(key)
  }

  /**
   * Calls an operation of the keeper that runs the node. Rejects with a KeeperError from the keeper, with 503 when the keeper does not
   * answer, with 409 when it ends, cannot be started, or does not have the operation.
   */
  async call<Op extends keyof Operations>(
    op: Op,
    input: Operations[Op]['in'],
    ms?: number,
  ): Promise<Operations[Op]['out']> {
    const named = 'key' in input ? input.key : 'links' in input ? input.links[0]?.ports[0] : undefined
    const key = named === undefined ? undefined : unitOf(named)
    if (op === 'unit.forget' && key !== undefined && this.#ended.delete(key)) return {} as Operations[Op]['out']
    if (op === 'port.report' && key === undefined)
      return { ports: await this.#reports(input as Operations['port.report']['in'], ms) } as Operations[Op]['out']
    const older = key === undefined ? undefined : this.#holders.get(key)
    if (older === undefined || key === undefined) return this.#ask(this.#own, op, input, ms)
    if (op === 'unit.start') throw new KeeperError('exists', `${key} runs in an older keeper`)
    if (op === 'port.report' && !this.isChangeable(key))
      return { ports: [unknownReport((input as { key: string }).key)] } as Operations[Op]['out']
    const result = await this.#ask(older.hold, op, input, ms)
    if (op === 'unit.stop' || op === 'unit.forget') {
      await this.#unitEnded(older, key).catch((err: unknown) =>
        this.#log.error({ err, unit: key }, 'an older keeper still has the ports of a node that ended'),
      )
    }
    return result
  }

  /** The inventory of all keepers. Rejects when a keeper does not answer. */
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

  /** The state of a run of a unit; undefined when the keeper does not have it or does not answer. */
  async unit(key: string, run: number | undefined): Promise<UnitState | undefined> {
    const inventory = await this.inventory().catch(() => undefined)
    return inventory?.units.find((unit) => unit.key === key && unit.run === run)
  }

  /** Closes the ports of a stopped node in an older keeper, so that the node starts in the keeper of this build. */
  async leaveOlder(key: string): Promise<void> {
    const older = this.#holders.get(key)
    if (older !== undefined && !older.running.has(key)) await this.#release(older, key, true)
  }

  /** Removes the sockets of an ended IOU instance, if the keeper answers. */
  async tidyNetio(application_id: number): Promise<void> {
    const tidy = () => this.call('netio.tidy', { application_id }, tidyMs)
    // The keeper may have ended too; the second call reaches the new one.
    await tidy().catch(tidy).catch(ignore('the next instance with this id tidies up, too'))
  }

  /** See `KeeperClient.attach`. */
  attach<Op extends 'console.attach' | 'console.run' | 'capture.attach'>(
    op: Op,
    input: Operations[Op]['in'],
  ): Promise<Socket> {
    return this.#with(this.#holdOf(unitOf(input.key)), (client) => client.attach(op, input))
  }

  /** The packet path of the switch. */
  async packetPath(): Promise<PacketPathName> {
    return this.#with(this.#own, async (client) => client.packetPath)
  }

  /** `stop`: ends the keepers with their nodes. Otherwise they keep running without the service. */
  async close({ stop }: { stop: boolean }): Promise<void> {
    this.#isClosed = true
    await this.#found
    await Promise.all(
      this.#holds.map(async (hold) => {
        const client = await hold.ready().catch(() => undefined)
        hold.end()
        if (client === undefined) return
        if (stop || (await isEmpty(client)))
          await end(client, 3000).catch(ignore('a keeper that does not end politely loses its connection'))
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

  /** The reports of many ports. Older keepers that do not answer are left out. */
  async #reports(input: Operations['port.report']['in'], ms: number | undefined): Promise<PortReport[]> {
    const older = [...this.#older.values()].map(({ hold }) =>
      this.#ask(hold, 'port.report', input, ms).catch(() => ({ ports: [] })),
    )
    const parts = await Promise.all([this.#ask(this.#own, 'port.report', input, ms), ...older])
    return parts.flatMap(({ ports }) => ports)
  }

  async #findOlder(): Promise<void> {
    const directories = otherKeeperDirectories(this.#dataDirectory)
    await Promise.all(
      directories.map(async (directory) => {
        // If the check fails, the keeper may run nodes.
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
        connect: (onLate) => openKeeper(directory, onLate),
        onUp: (client) => {
          this.#log.info({ keeper: client.pid, version: client.version }, 'a keeper of another build holds nodes')
          this.#listenTo(client, older)
        },
        onTrouble: (trouble) => this.#setUnknownReason(trouble),
        onDeath: () => {
          void this.#onDeathOf(older).catch((error: unknown) =>
            this.#log.error({ err: error }, 'after the end of a keeper'),
          )
          return false
        },
        onFailure: async () => {
          if (await hasKeeper(directory).catch(() => false)) return true
          await this.#onDeathOf(older)
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

  /** Reads the inventory of an older keeper. Closes the ports of stopped nodes there, except for nodes with a capture. */
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

  /** Handles the end of a unit of an older keeper. */
  async #unitEnded(older: Older, key: string): Promise<void> {
    older.running.delete(key)
    if (older.running.size === 0) await this.#retire(older)
    else await this.#release(older, key, false)
  }

  /** Closes the ports of a stopped node in an older keeper; `always`: even with a capture. */
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

  /** Ends an older keeper after its last unit. */
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
        if (capture != null) this.#listener?.captureFailed(key, capture.file, 'the keeper of the build before ended')
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

  /** Handles the death of an older keeper with its units. */
  async #onDeathOf(older: Older): Promise<void> {
    if (this.#isClosed || older.retiring !== undefined) return
    this.#log.error({ directory: older.hold.directory }, 'a keeper of another build died')
    const held = new Set([...this.#holders].filter(([, holder]) => holder === older).map(([key]) => key))
    this.#drop(older)
    await this.#clear(older.hold.directory)
    await this.#listener?.onKeeperDeath((key) => held.has(key), false)
  }

  /** Ends the orphans of a keeper that no longer runs, and removes its directory. */
  async #clear(directory: string): Promise<void> {
    try {
      await this.#reap(directory)
      const isFirst = directory === join(this.#dataDirectory, 'run')
      const paths = isFirst ? ['keeper.sock', 'children'].map((name) => join(directory, name)) : [directory]
      for (const path of paths) await rm(path, { recursive: true, force: true })
    } catch (error) {
      this.#log.error({ err: error, directory }, 'the files of an ended keeper cannot be removed')
    }
  }

  #listenTo(client: KeeperClient, older?: Older): void {
    client.onExit = (key, run, exit) => this.#listener?.onUnitExit(key, run, exit)
    client.onLooped = (loop) => this.#listener?.looped?.(loop)
    client.onCaptureFailed = ({ key, file, message }) => {
      if (older?.retiring === undefined) this.#listener?.captureFailed(key, file, message)
    }
  }

  #setUnknownReason(trouble: string | undefined): void {
    if (this.#isClosed) return
    if (trouble !== undefined) {
      this.#log.error({ reason: trouble }, 'the state of the nodes of a keeper is unknown')
      this.#listener?.onUnresponsive(trouble)
    } else if (this.unknownReason === undefined) {
      this.#listener?.answered().catch((err: unknown) => this.#log.error({ err }, 'after a keeper answered again'))
    }
  }

  /** Reports the death of the keeper of this build. Called before the first operation of the new keeper. */
  #reportLoss(): void {
    if (!this.#hasLoss) return
    this.#hasLoss = false
    this.#listener
      ?.onKeeperDeath((key) => !this.#holders.has(key), true)
      .catch((error: unknown) => this.#log.error({ err: error }, 'after the end of a keeper'))
  }

  async #reap(directory: string): Promise<void> {
    if (!existsSync(join(directory, 'children'))) return
    const ended = await reapLeftovers(directory)
    if (ended.length > 0) this.#log.warn({ units: ended }, 'ended the orphans of a killed keeper')
  }
}

/** Whether a keeper holds nothing that a next service would take over. It would end by itself, but only after a while. */
async function isEmpty(client: KeeperClient): Promise<boolean> {
  const held = await client.call('inventory', {}).catch(() => undefined)
  return held !== undefined && held.units.length + held.ports.length + (held.links?.length ?? 0) === 0
}

/** Ends a keeper; resolves when it has ended, or after `endMs`. */
async function end(client: KeeperClient, graceMs: number): Promise<void> {
  // The keeper may end before its answer is sent: `internal`.
  await client.call('shutdown', { grace_ms: graceMs }).catch(ignoreCode('internal'))
  await withTimeout(client.closed, endMs, () => {})
}

/** Turns errors of the connection to a keeper into API errors; errors of operations stay KeeperErrors. */
function failed(error: unknown): never {
  const cause = error as Error
  switch (keeperErrorCode(error)) {
    case 'no_answer':
      throw unknownState(cause)
    case 'other_version':
      throw conflict(`${cause.message}: to change it, stop the node and start it again`, { cause })
    case 'internal':
      throw conflict(`${cause.message}; try again`, { cause })
    default:
      throw error
  }
}

const retryAfterSeconds = '5'

/** The error of an operation that must know the state of a node, while its keeper does not answer. `result`: what became of it. */
export const unknownState = (cause?: Error, result = 'Nothing was changed'): ApiError =>
  new ApiError(
    503,
    `Node state is unknown because the keeper is not responding${cause ? ` (${cause.message})` : ''}. ${result}; try again`,
    {
      cause,
      headers: { 'Retry-After': retryAfterSeconds },
    },
  )

/** The report on a port in a keeper of another protocol, which has no such operation. */
const unknownReport = (key: string): PortReport => ({ key, link: 'silent', ...nothingPassed, capture: null })

/** The code of a KeeperError. */
export const keeperErrorCode = (error: unknown): string | undefined =>
  error instanceof KeeperError ? error.code : undefined

/** For `catch`: rethrows all errors but KeeperErrors with the code. */
export const ignoreCode = (code: KeeperErrorCode) => (error: unknown) => {
  if (keeperErrorCode(error) !== code) throw error
}
