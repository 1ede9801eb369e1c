import { ApiError, conflict } from '../../../../../src/errors/api-error.ts'
import type { Log } from '../../../log/log.ts'
import type { ApplianceDriver, ApplianceRun, CloneWanted, Vm, VmAdapter, VmEnding, VmPlan } from '../driver.ts'
import { adapterTypeNames, adapterTypeOf } from './adapter-types.ts'
import { Appliances } from './appliances.ts'
import { Clones } from './clones.ts'
import type { CommandLineOptions } from './command-line.ts'
import { hasTimedOut } from './failure.ts'
import type { VirtualBoxVm } from './machine.ts'
import { Machines } from './machines.ts'
import { isFree } from './preparation.ts'
import { RunRecords } from './run-record.ts'
import { RunningWatch } from './running-watch.ts'
import { defaultTimes, Runs, type RunTimes } from './runs.ts'
import { SerialSockets } from './serial-sockets.ts'

export interface VirtualBoxOptions extends CommandLineOptions {
  /** What is known of running machines, and the sockets of their serial ports; only we may enter it. */
  readonly directory: string
  readonly log: Log
  readonly times?: Partial<RunTimes>
  /** Between two questions what runs, ms. */
  readonly watchMs?: number
}

/** VirtualBox through VBoxManage. */
export class VirtualBoxDriver implements ApplianceDriver {
  readonly name = 'virtualbox'
  readonly adapterTypes = adapterTypeNames
  readonly #machines: Machines
  readonly #runs: Runs
  readonly #clones: Clones
  readonly #appliances: Appliances
  readonly #records: RunRecords
  readonly #sockets: SerialSockets
  readonly #watch: RunningWatch
  readonly #watchers = new Set<(uuid: string) => void>()

  constructor({ directory, log, times, watchMs = 2000, ...line }: VirtualBoxOptions) {
    this.#machines = new Machines(line)
    this.#records = new RunRecords(directory)
    this.#sockets = new SerialSockets(directory)
    this.#clones = new Clones(this.#machines)
    this.#appliances = new Appliances(this.#machines)
    const parts = { machines: this.#machines, records: this.#records, sockets: this.#sockets }
    this.#runs = new Runs({ ...parts, log, times: { ...defaultTimes, ...times } })
    const ask = async () => (await this.#machines.list('runningvms')).map(({ uuid }) => uuid)
    this.#watch = new RunningWatch(ask, watchMs, (uuid) => this.#changed(uuid))
  }

  adapterType(text: string): string | undefined {
    return adapterTypeOf(text)
  }

  /** Where the serial port of a machine is while it runs: a UNIX socket for one client, in place of `serialPort` of the plan. */
  serialPath(uuid: string): string {
    return this.#sockets.path(uuid)
  }

  async list(): Promise<Vm[]> {
    const found: Vm[] = []
    for (const { uuid } of await this.#machines.list()) {
      const machine = await this.#described(uuid)
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
    // One that is stuck is not among those that VirtualBox says run.
    this.#watch.note(uuid, isRunning(machine) && !machine.isStuck)
    return await this.#vm(await this.#runs.settle(machine))
  }

  async maxAdapters(uuid: string): Promise<number> {
    return await this.#runs.maxAdapters(await this.#machines.get(uuid))
  }

  async usedAdapters(uuid: string): Promise<number[]> {
    const machine = await this.#machines.get(uuid)
    const before = new Map((await this.#runs.before(uuid))?.adapters.map((each) => [each.number, each.attachment]))
    const asDefined = machine.adapters.map((each) => ({
      ...each,
      attachment: before.get(each.number) ?? each.attachment,
    }))
    return asDefined.filter((each) => !isFree(each)).map(({ number }) => number - 1)
  }

  async start(uuid: string, plan: VmPlan): Promise<void> {
    await this.#runs.start(uuid, plan)
    this.#watch.note(uuid, true)
  }

  async startAppliance(uuid: string, run: ApplianceRun): Promise<void> {
    // One that a node had may still be as the node wanted it.
    await this.#appliances.start(await this.#runs.settle(await this.#machines.get(uuid)), run)
    this.#watch.note(uuid, true)
  }

  async reach(uuid: string, port: number): Promise<readonly { host: string; port: number }[]> {
    return this.#appliances.reach(await this.#machines.get(uuid), port)
  }

  async stop(uuid: string, how: VmEnding, signal?: AbortSignal): Promise<void> {
    await this.#runs.stop(uuid, how, signal)
    this.#watch.note(uuid, false)
  }

  async holds(uuid: string): Promise<boolean> {
    const machine = await this.#machines.find(uuid)
    return machine !== undefined && isRunning(machine) && this.#runs.isOurs(machine)
  }

  async suspend(uuid: string): Promise<void> {
    await this.#machines.run('controlvm', uuid, 'pause')
  }

  async resume(uuid: string): Promise<void> {
    await this.#machines.run('controlvm', uuid, 'resume')
  }

  async reset(uuid: string): Promise<void> {
    await this.#machines.run('controlvm', uuid, 'reset')
  }

  setCarrier(uuid: string, adapter: VmAdapter): Promise<void> {
    return this.#runs.setCarrier(uuid, adapter)
  }

  async clone(wanted: CloneWanted): Promise<Vm> {
    // What is cloned is the machine as its owner has it.
    const source = await this.#runs.settle(await this.#machines.get(wanted.uuid))
    return await this.#vm(await this.#clones.make(source, wanted))
  }

  isUnclear(error: unknown): boolean {
    return hasTimedOut(error) || !(error instanceof ApiError)
  }

  async renameClone(uuid: string, name: string): Promise<void> {
    await this.#clones.rename(await this.#machines.get(uuid), name)
  }

  async openClone(uuid: string, directory: string): Promise<Vm> {
    return await this.#vm(await this.#clones.open(uuid, directory))
  }

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

  /** When a project has been closed: disks below its directory whose files are gone are forgotten. */
  forgetMissingDisks(directory: string): Promise<void> {
    return this.#clones.forgetMissingDisks(directory)
  }

  /** Puts back what a service before this one could not, of machines that do not run any more; never rejects. */
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
    // Whoever is told may not ask.
    void this.get(uuid).catch(() => undefined)
  }

  /** A machine of the user's; undefined for clones, and for what has gone or cannot be read. */
  async #described(uuid: string): Promise<VirtualBoxVm | undefined> {
    if (await this.#clones.isClone(uuid)) return undefined
    const machine = await this.#machines.findReadable(uuid)
    return machine === undefined ? undefined : await this.#runs.settle(machine)
  }

  async #vm({ uuid, name, memory, state }: VirtualBoxVm): Promise<Vm> {
    return { uuid, name, ram: (await this.#runs.before(uuid))?.memory?.before ?? memory, state }
  }
}

const isRunning = ({ state }: VirtualBoxVm) => state === 'started' || state === 'suspended'
