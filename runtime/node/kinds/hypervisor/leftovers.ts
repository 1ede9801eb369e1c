import { dirname } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { type HypervisorDriverName, hypervisorDrivers } from '../../../../src/model/hypervisor.ts'
import { Serial } from '../../../../src/serial.ts'
import type { Log } from '../../log.ts'
import { makeDirectory, readDurable, writeDurable } from '../../projects/durable-file.ts'
import type { HypervisorDriver } from './driver.ts'

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
}

/** What a hypervisor that did not answer could not be told to do; it is told when it answers again. */
export class Leftovers {
  readonly #options: LeftoversOptions
  readonly #serial = new Serial()
  #known: Promise<Map<string, Leftover>> | undefined
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
    const all = await this.#all()
    all.set(leftover.uuid, { ...leftover, clone: leftover.clone ?? all.get(leftover.uuid)?.clone ?? null })
    await this.#save()
    this.#wait = 0
    this.#plan(this.#longer())
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
    try {
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
    const { file, log } = this.#options
    await this.#serial
      .run('file', async () => {
        await makeDirectory(dirname(file))
        await writeDurable(file, JSON.stringify([...(await this.#all()).values()]))
      })
      .catch((err: unknown) => log.warn({ err }, 'what is left of VMs could not be written down'))
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
