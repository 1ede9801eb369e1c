import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { type HypervisorDriverName, hypervisorDrivers } from '../../../../src/model/kinds/hypervisor.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { jsonOf, makeDirectory, readDurable, writeDurable } from '../../engine/storage/durable-file.ts'
import type { Log } from '../../os/log/log.ts'
import type { HypervisorDriver } from './driver.ts'

/** A hypervisor answers a request within minutes, or never, ms. */
const seekMs = 600_000

/** Cleanup of a VM whose node has ended or is gone. */
export type Leftover = Static<typeof Leftover>
const Leftover = Type.Object({
  driver: Type.Union(hypervisorDrivers.map((name) => Type.Literal(name))),
  uuid: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
  /** Identifies the run. */
  serial_port: Type.Union([Type.Integer(), Type.Null()]),
  /** The cleanup of a linked clone after its stop. */
  clone: Type.Union([Type.Literal('close'), Type.Literal('remove'), Type.Null()]),
  /** The directory of the node. */
  directory: Type.String(),
  /**
   * A clone under creation, or after an unclear failure. If it appears before `until` (ms since 1970), and `record` is missing, it
   * is removed.
   */
  creating: Type.Optional(Type.Object({ record: Type.String(), until: Type.Integer() })),
})

interface LeftoversOptions {
  readonly drivers: Readonly<Record<HypervisorDriverName, HypervisorDriver>>
  /** The record of leftovers, for a later service. */
  readonly file: string
  /** Whether a node has the VM, and runs it. */
  readonly useOf: (uuid: string) => 'none' | 'held' | 'runs'
  readonly log: Log
  /** Backoff between attempts: the first and the longest wait, ms. */
  readonly retryMs?: readonly [number, number]
  /** How long a clone that may still appear is sought, ms. */
  readonly soughtMs?: number
}

/** Cleanup that failed because a hypervisor did not answer; it is retried until it succeeds. */
export class Leftovers {
  readonly #options: LeftoversOptions
  readonly #serial = new KeyedMutex()
  #loaded: Promise<Map<string, Leftover>> | undefined
  /** Clones that this service is creating. */
  readonly #creating = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #wait = 0
  #isClosed = false

  constructor(options: LeftoversOptions) {
    this.#options = options
  }

  /** Begins with the leftovers of an earlier service. Never throws. */
  async open(): Promise<void> {
    if ((await this.#all()).size > 0) this.#schedule(0)
  }

  /** Adds a leftover. Never throws: on a full disk the leftover is kept in memory. */
  async add(leftover: Leftover): Promise<void> {
    this.#creating.delete(leftover.uuid)
    const all = await this.#all()
    all.set(leftover.uuid, { ...leftover, clone: leftover.clone ?? all.get(leftover.uuid)?.clone ?? null })
    await this.#save()
    this.#wait = 0
    this.#schedule(this.#nextWait())
  }

  /**
   * Records a clone before its creation, so that a failed one is removed; `record` is the path of the future record of its node.
   * Rejects when the disk is full or read-only (507); the clone must not be created then.
   */
  async begin(clone: Pick<Leftover, 'driver' | 'uuid' | 'directory'>, record: string): Promise<void> {
    const until = Date.now() + (this.#options.soughtMs ?? seekMs)
    const all = await this.#all()
    this.#creating.add(clone.uuid)
    all.set(clone.uuid, { ...clone, serial_port: null, clone: 'remove', creating: { record, until } })
    await withDiskErrors('The clone was not created', () => this.#write()).catch((error: unknown) => {
      this.#creating.delete(clone.uuid)
      all.delete(clone.uuid)
      throw error
    })
  }

  /** The creation of the clone failed without a clear result. */
  async failed(uuid: string): Promise<void> {
    this.#creating.delete(uuid)
    if (!(await this.#all()).has(uuid)) return
    this.#wait = 0
    this.#schedule(this.#nextWait())
  }

  /** The clone belongs to its node now, or is gone. */
  async done(uuid: string): Promise<void> {
    this.#creating.delete(uuid)
    const leftover = (await this.#all()).get(uuid)
    if (leftover?.creating !== undefined) await this.#forget(leftover)
  }

  /** Stops an earlier run before a new start; 409 when that fails. */
  async settle(uuid: string): Promise<void> {
    await this.#serial.run(uuid, async () => {
      const leftover = (await this.#all()).get(uuid)
      if (leftover === undefined) return
      await this.#end(leftover)
      await this.#forget(leftover)
    })
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#tryAll(), ms).unref()
  }

  #nextWait(): number {
    const [first, longest] = this.#options.retryMs ?? [500, 30_000]
    this.#wait = Math.min(longest, Math.max(first, this.#wait * 2))
    return this.#wait
  }

  async #tryAll(): Promise<void> {
    const all = await this.#all()
    await Promise.all([...all.keys()].map((uuid) => this.#serial.run(uuid, () => this.#try(uuid))))
    if (all.size > 0) this.#schedule(this.#nextWait())
  }

  async #try(uuid: string): Promise<void> {
    const leftover = (await this.#all()).get(uuid)
    if (leftover === undefined || this.#isClosed) return
    const { drivers, useOf, log } = this.#options
    const { clone, directory } = leftover
    if (this.#creating.has(uuid)) return
    try {
      if (leftover.creating !== undefined) return await this.#seek(leftover, leftover.creating)
      if (useOf(uuid) === 'runs') return
      await this.#end(leftover)
      const driver = drivers[leftover.driver]
      if (clone !== null) {
        // The node was opened again, or is not removed yet.
        if (useOf(uuid) === 'held') return
        await (clone === 'remove' ? driver.removeClone(uuid) : driver.closeClone(uuid))
        await driver.forgetMissingDisks?.(directory)
      }
      await this.#forget(leftover)
      log.info({ vm: uuid }, 'the leftovers of a VM are removed')
    } catch (cause) {
      log.debug({ vm: uuid, err: cause }, 'the leftovers of a VM cannot be removed yet')
    }
  }

  /** Removes a clone that appears late: the hypervisor may still execute a request after its timeout. */
  async #seek(leftover: Leftover, { record, until }: NonNullable<Leftover['creating']>): Promise<void> {
    const { drivers, useOf, log } = this.#options
    const { uuid, directory } = leftover
    const driver = drivers[leftover.driver]
    const hasNode = useOf(uuid) !== 'none' || existsSync(record)
    if (!hasNode && (await driver.get(uuid)) !== undefined) {
      await driver.removeClone(uuid)
      await driver.forgetMissingDisks?.(directory)
      log.info({ vm: uuid }, 'a clone without a node is removed')
    } else if (!hasNode && Date.now() < until) return
    await this.#forget(leftover)
  }

  async #end({ driver, uuid, serial_port }: Leftover): Promise<void> {
    await endRun(this.#options.drivers[driver], { vm_uuid: uuid, serial_port })
  }

  async #forget(leftover: Leftover): Promise<void> {
    const all = await this.#all()
    // A newer leftover may have replaced it.
    if (all.get(leftover.uuid) !== leftover) return
    all.delete(leftover.uuid)
    await this.#save()
  }

  async #save(): Promise<void> {
    await this.#write().catch((err: unknown) =>
      this.#options.log.error({ err }, 'the leftovers of VMs could not be saved'),
    )
  }

  #write(): Promise<void> {
    const { file } = this.#options
    return this.#serial.run('file', async () => {
      await makeDirectory(dirname(file))
      await writeDurable(file, JSON.stringify([...(await this.#all()).values()]))
    })
  }

  #all(): Promise<Map<string, Leftover>> {
    this.#loaded ??= readDurable(this.#options.file, jsonOf(Type.Array(Leftover))).then(
      (found) => new Map(found?.value.map((vm) => [vm.uuid, vm])),
    )
    return this.#loaded
  }
}

/** Stops a VM if the service started it; a run of the user goes on. */
export async function endRun(
  driver: HypervisorDriver,
  { vm_uuid, serial_port }: { readonly vm_uuid: string; readonly serial_port: number | null },
): Promise<void> {
  if (await driver.holds(vm_uuid, serial_port ?? 0)) await driver.stop(vm_uuid, 'power_off')
}
