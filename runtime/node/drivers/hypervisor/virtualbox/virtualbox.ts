import { ApiError, conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { Log } from '../../../os/log/log.ts'
import type { ApplianceDriver, ApplianceRun, CloneRequest, StopMode, Vm, VmAdapter, VmPlan } from '../driver.ts'
import { adapterTypeNames, adapterTypeOf } from './adapter-types.ts'
import { Appliances } from './appliances.ts'
import { VirtualBoxClones } from './clones.ts'
import type { CommandLineOptions } from './command-line.ts'
import { hasTimedOut } from './failure.ts'
import type { VirtualBoxAdapter, VirtualBoxVm } from './machine.ts'
import { Machines } from './machines.ts'
import { isFree } from './preparation.ts'
import { RunRecords } from './run-record.ts'
import { RunningWatch } from './running-watch.ts'
import { defaultTimes, Runs, type RunTimes } from './runs.ts'
import { SerialSockets } from './serial-sockets.ts'

export interface VirtualBoxOptions extends CommandLineOptions {
  /** The directory, of mode 0700, of run records and of the sockets of serial ports. */
  readonly directory: string
  readonly log: Log
  readonly times?: Partial<RunTimes>
  /** Interval of the polls of running VMs, ms. */
  readonly watchMs?: number
}

/** The driver for VirtualBox, by VBoxManage. */
export class VirtualBoxDriver implements ApplianceDriver {
  readonly name = 'virtualbox'
  readonly adapterTypes = adapterTypeNames
  readonly adapterType = adapterTypeOf
  readonly #machines: Machines
  readonly #runs: Runs
  readonly #clones: VirtualBoxClones
  readonly #appliances: Appliances
  readonly #records: RunRecords
  readonly #sockets: SerialSockets
  readonly #watch: RunningWatch
  readonly #watchers = new Set<(uuid: string) => void>()

  constructor({ directory, log, times, watchMs = 2000, ...line }: VirtualBoxOptions) {
    this.#machines = new Machines(line)
    this.#records = new RunRecords(directory)
    this.#sockets = new SerialSockets(directory)
    this.#clones = new VirtualBoxClones(this.#machines)
    this.#appliances = new Appliances(this.#machines)
    const parts = { machines: this.#machines, records: this.#records, sockets: this.#sockets }
    this.#runs = new Runs({ ...parts, log, times: { ...defaultTimes, ...times } })
    const list = async () => (await this.#machines.list('runningvms')).map(({ uuid }) => uuid)
    this.#watch = new RunningWatch(list, watchMs, (uuid) => this.#changed(uuid))
  }

  serialPath = (uuid: string): string => this.#sockets.path(uuid)

  async list(): Promise<Vm[]> {
    const found: Vm[] = []
    for (const { uuid } of await this.#machines.list()) {
      const machine = await this.#userVm(uuid)
      if (machine !== undefined) found.push(await this.#vm(machine))
    }
    return found
  }

  async find(name: string): Promise<Vm> {
    const listed = (await this.#machines.list()).find((each) => each.name === name)
    if (listed === undefined) throw conflict(`VirtualBox has no VM ${JSON.stringify(name)}`)
    return await this.#vm(await this.#machines.get(listed.uuid))
  }

  async get(uuid: string): Promise<Vm | undefined> {
    const machine = await this.#machines.find(uuid)
    if (machine === undefined) {
      this.#watch.forget(uuid)
      return undefined
    }
    // `list runningvms` does not include stuck VMs.
    this.#watch.note(uuid, isRunning(machine) && !machine.isStuck)
    return await this.#vm(await this.#runs.settle(machine))
  }

  async maxAdapters(uuid: string): Promise<number> {
    return await this.#runs.maxAdapters(await this.#machines.get(uuid))
  }

  async usedAdapters(uuid: string): Promise<number[]> {
    const machine = await this.#machines.get(uuid)
    const before = new Map((await this.#runs.before(uuid))?.adapters.map((each) => [each.number, each.attachment]))
    const attachmentOf = ({ number, attachment }: VirtualBoxAdapter) => before.get(number) ?? attachment
    const used = machine.adapters.filter((each) => !isFree({ ...each, attachment: attachmentOf(each) }))
    return used.map(({ number }) => number - 1)
  }

  async start(uuid: string, plan: VmPlan): Promise<void> {
    await this.#runs.start(uuid, plan)
    this.#watch.note(uuid, true)
  }

  async startAppliance(uuid: string, run: ApplianceRun): Promise<void> {
    // The VM may still have the settings of a node.
    await this.#appliances.start(await this.#runs.settle(await this.#machines.get(uuid)), run)
    this.#watch.note(uuid, true)
  }

  async reach(uuid: string, port: number): Promise<readonly { host: string; port: number }[]> {
    return this.#appliances.reach(await this.#machines.get(uuid), port)
  }

  async stop(uuid: string, how: StopMode, signal?: AbortSignal): Promise<void> {
    await this.#runs.stop(uuid, how, signal)
    this.#watch.note(uuid, false)
  }

  async holds(uuid: string): Promise<boolean> {
    const machine = await this.#machines.find(uuid)
    if (machine === undefined) return false
    return isRunning(machine) ? this.#runs.isOurs(machine) : (await this.#runs.before(uuid)) !== undefined
  }

  suspend = (uuid: string): Promise<void> => this.#control(uuid, 'pause')
  resume = (uuid: string): Promise<void> => this.#control(uuid, 'resume')
  reset = (uuid: string): Promise<void> => this.#control(uuid, 'reset')

  async #control(uuid: string, command: string): Promise<void> {
    await this.#machines.run('controlvm', uuid, command)
  }

  setCarrier = (uuid: string, adapter: VmAdapter): Promise<void> => this.#runs.setCarrier(uuid, adapter)

  async clone(request: CloneRequest): Promise<Vm> {
    // The source must have the settings of its owner.
    const source = await this.#runs.settle(await this.#machines.get(request.uuid))
    return this.#vm(await this.#clones.create(source, request))
  }

  mayHaveSucceeded = (error: unknown): boolean => hasTimedOut(error) || !(error instanceof ApiError)

  renameClone = async (uuid: string, name: string) => this.#clones.rename(await this.#machines.get(uuid), name)

  openClone = async (uuid: string, directory: string) => this.#vm(await this.#clones.open(uuid, directory))

  async closeClone(uuid: string): Promise<void> {
    const clone = await this.#machines.find(uuid)
    if (clone !== undefined) await this.#clones.close(await this.#runs.settle(clone))
    this.#watch.forget(uuid)
  }

  async removeClone(uuid: string): Promise<void> {
    const clone = await this.#machines.find(uuid)
    if (clone !== undefined) await this.#clones.remove(clone)
    await this.#runs.forget(uuid)
    this.#watch.forget(uuid)
  }

  forgetMissingDisks = (directory: string): Promise<void> => this.#clones.forgetMissingDisks(directory)

  /** Restores settings that an earlier service could not restore. */
  async recover(): Promise<void> {
    for (const uuid of await this.#records.uuids()) await this.get(uuid).catch(() => undefined)
  }

  watch(changed: (uuid: string) => void): () => void {
    const watcher = (uuid: string) => changed(uuid)
    this.#watchers.add(watcher)
    const leave = this.#watch.enter()
    return () => {
      this.#watchers.delete(watcher)
      leave()
    }
  }

  async close(): Promise<void> {
    this.#watch.close()
    this.#watchers.clear()
    await this.#machines.close()
  }

  #changed(uuid: string): void {
    for (const watcher of this.#watchers) watcher(uuid)
    // Reads the VM, because a watcher may not do so.
    void this.get(uuid).catch(() => undefined)
  }

  /** A VM of the user; undefined for clones, and for VMs that are gone or cannot be read. */
  async #userVm(uuid: string): Promise<VirtualBoxVm | undefined> {
    if (await this.#clones.isClone(uuid)) return undefined
    const machine = await this.#machines.findReadable(uuid)
    return machine === undefined ? undefined : await this.#runs.settle(machine)
  }

  async #vm({ uuid, name, memory, state }: VirtualBoxVm): Promise<Vm> {
    return { uuid, name, ram: (await this.#runs.before(uuid))?.memory?.before ?? memory, state }
  }
}

const isRunning = ({ state }: VirtualBoxVm) => state === 'started' || state === 'suspended'
