import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { KeyedMutex } from '../../../../src/async/keyed-mutex.ts'
import { type HypervisorDriverName, hypervisorDrivers } from '../../../../src/kinds/hypervisor.ts'
import type { Log } from '../../log/log.ts'
import { withDiskErrors } from '../../storage/disk.ts'
import { makeDirectory, readDurable, writeDurable } from '../../storage/durable-file.ts'
import type { HypervisorDriver } from './driver.ts'

/** A manager answers a request within some minutes, or never, ms. */
const soughtMs = 600_000

/** What is still to be done with a VM whose node does not run any more, or is gone. */
export type Leftover = Static<typeof Leftover>
const Leftover = Type.Object({
  driver: Type.Union(hypervisorDrivers.map((name) => Type.Literal(name))),
  uuid: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
  /** By which a run of ours is known. */
  serial_port: Type.Union([Type.Integer(), Type.Null()]),
  /** What becomes of a linked clone when it has ended; null: nothing. */
  clone: Type.Union([Type.Literal('close'), Type.Literal('remove'), Type.Null()]),
  /** Of the node. */
  directory: Type.String(),
  /**
   * The clone is being made, or that failed without it being known how far it came: it is removed when it is found until then
   * (ms since 1970), unless its node has a record.
   */
  creating: Type.Optional(Type.Object({ record: Type.String(), until: Type.Integer() })),
})
const Written = Type.Array(Leftover)

export interface LeftoversOptions {
  readonly drivers: Readonly<Record<HypervisorDriverName, HypervisorDriver>>
  /** Where they are remembered for a service that comes later. */
  readonly file: string
  /** What nodes do that have the VM: none has it, one has it that does not run, or one runs it. */
  readonly useOf: (uuid: string) => 'none' | 'held' | 'runs'
  readonly log: Log
  /** Between two attempts: the first wait and the longest, ms. */
  readonly retryMs?: readonly [number, number]
  /** How long a clone that may still be made is looked for, ms. */
  readonly soughtMs?: number
}

/** What a hypervisor that did not answer could not be told to do; it is told when it answers again. */
export class Leftovers {
  readonly #options: LeftoversOptions
  readonly #serial = new KeyedMutex()
  #known: Promise<Map<string, Leftover>> | undefined
  /** Clones that this service is making. */
  readonly #making = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #wait = 0
  #isClosed = false

  constructor(options: LeftoversOptions) {
    this.#options = options
  }

  /** Takes up what a service before this one has left. Never throws. */
  async open(): Promise<void> {
    if ((await this.#all()).size > 0) this.#plan(0)
  }

  /** Never throws: a disk that is full remembers nothing, this service does. */
  async add(leftover: Leftover): Promise<void> {
    this.#making.delete(leftover.uuid)
    const all = await this.#all()
    all.set(leftover.uuid, { ...leftover, clone: leftover.clone ?? all.get(leftover.uuid)?.clone ?? null })
    await this.#save()
    this.#wait = 0
    this.#plan(this.#longer())
  }

  /**
   * A clone is about to be made for a node whose record will be at `record`: what is left of it when that fails is removed. Rejects
   * when that cannot be written down (507 on a full or read-only disk): nothing is to be made then.
   */
  async begin(clone: Pick<Leftover, 'driver' | 'uuid' | 'directory'>, record: string): Promise<void> {
    const until = Date.now() + (this.#options.soughtMs ?? soughtMs)
    const all = await this.#all()
    this.#making.add(clone.uuid)
    all.set(clone.uuid, { ...clone, serial_port: null, clone: 'remove', creating: { record, until } })
    await withDiskErrors('The clone was not made', () => this.#write()).catch((error: unknown) => {
      this.#making.delete(clone.uuid)
      all.delete(clone.uuid)
      throw error
    })
  }

  /** The clone could not be made, as far as that is known. */
  async failed(uuid: string): Promise<void> {
    this.#making.delete(uuid)
    if (!(await this.#all()).has(uuid)) return
    this.#wait = 0
    this.#plan(this.#longer())
  }

  /** The clone is that of its node, or is gone. */
  async done(uuid: string): Promise<void> {
    this.#making.delete(uuid)
    const leftover = (await this.#all()).get(uuid)
    if (leftover?.creating !== undefined) await this.#forget(leftover)
  }

  /** A node is about to run the VM: what is left of the run before is ended first. 409 when it cannot be. */
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

  #plan(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#tryAll(), ms).unref()
  }

  #longer(): number {
    const [first, longest] = this.#options.retryMs ?? [500, 30_000]
    this.#wait = Math.min(longest, Math.max(first, this.#wait * 2))
    return this.#wait
  }

  async #tryAll(): Promise<void> {
    const all = await this.#all()
    await Promise.all([...all.keys()].map((uuid) => this.#serial.run(uuid, () => this.#try(uuid))))
    if (all.size > 0) this.#plan(this.#longer())
  }

  async #try(uuid: string): Promise<void> {
    const leftover = (await this.#all()).get(uuid)
    if (leftover === undefined || this.#isClosed) return
    const { drivers, useOf, log } = this.#options
    const { clone, directory } = leftover
    if (this.#making.has(uuid)) return
    try {
      if (leftover.creating !== undefined) return await this.#seek(leftover, leftover.creating)
      if (useOf(uuid) === 'runs') return
      await this.#end(leftover)
      const driver = drivers[leftover.driver]
      if (clone !== null) {
        // Its node was opened again, or is not gone yet.
        if (useOf(uuid) === 'held') return
        await (clone === 'remove' ? driver.removeClone(uuid) : driver.closeClone(uuid))
        await driver.forgetMissingDisks?.(directory)
      }
      await this.#forget(leftover)
      log.info({ vm: uuid }, 'what a node had left of its VM is tidied up')
    } catch (cause) {
      log.debug({ vm: uuid, err: cause }, 'what a node has left of its VM cannot be tidied up yet')
    }
  }

  /** A request to make a clone that was not answered in time may still be done: it is looked for more than once. */
  async #seek(leftover: Leftover, { record, until }: NonNullable<Leftover['creating']>): Promise<void> {
    const { drivers, useOf, log } = this.#options
    const { uuid, directory } = leftover
    const driver = drivers[leftover.driver]
    const isMade = useOf(uuid) !== 'none' || existsSync(record)
    if (!isMade && (await driver.get(uuid)) !== undefined) {
      await driver.removeClone(uuid)
      await driver.forgetMissingDisks?.(directory)
      log.info({ vm: uuid }, 'a clone that could not be made for a node is removed')
    } else if (!isMade && Date.now() < until) return
    await this.#forget(leftover)
  }

  async #end({ driver, uuid, serial_port }: Leftover): Promise<void> {
    await endLeft(this.#options.drivers[driver], { vm_uuid: uuid, serial_port })
  }

  async #forget(leftover: Leftover): Promise<void> {
    const all = await this.#all()
    // More may have been left meanwhile.
    if (all.get(leftover.uuid) !== leftover) return
    all.delete(leftover.uuid)
    await this.#save()
  }

  async #save(): Promise<void> {
    await this.#write().catch((err: unknown) =>
      this.#options.log.error({ err }, 'what is left of VMs could not be written down'),
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
    this.#known ??= readDurable(this.#options.file, parse).then(
      (found) => new Map(found?.value.map((it) => [it.uuid, it])),
    )
    return this.#known
  }
}

function parse(text: string): Leftover[] {
  const value: unknown = JSON.parse(text)
  if (!Check(Written, value)) throw new Error('not what is left of VMs')
  return value
}

/** Ends a run of ours, if there is one; what somebody else started is left alone. */
export async function endLeft(
  driver: HypervisorDriver,
  { vm_uuid, serial_port }: { readonly vm_uuid: string; readonly serial_port: number | null },
): Promise<void> {
  if (await driver.holds(vm_uuid, serial_port ?? 0)) await driver.stop(vm_uuid, 'power_off')
}
