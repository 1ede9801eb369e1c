import { setTimeout as pause } from 'node:timers/promises'
import { KeyedMutex } from '../../../../../src/lib/async/keyed-mutex.ts'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { Log } from '../../../os/log/log.ts'
import type { StopMode, VmAdapter, VmPlan } from '../driver.ts'
import { hasTimedOut, isLocked } from './failure.ts'
import type { VirtualBoxVm } from './machine.ts'
import type { Machines } from './machines.ts'
import { inUse, isFree, isTunnel, preparing, revealed, revealing, runRecordOf } from './preparation.ts'
import { restoring } from './restoration.ts'
import type { RunRecord, RunRecords } from './run-record.ts'
import type { SerialSockets } from './serial-sockets.ts'

/** Timeouts of a shutdown or save, of the release of a stopped VM, and of the creation of the serial socket; interval of polls. */
export type RunTimes = Readonly<typeof defaultTimes>
export const defaultTimes = { shutdownMs: 120_000, settleMs: 10_000, serialMs: 10_000, pollMs: 500 }

interface RunsOptions {
  readonly machines: Machines
  readonly records: RunRecords
  readonly sockets: SerialSockets
  readonly log: Log
  readonly times: RunTimes
}

/** Runs of VMs: prepares settings, starts and stops, and restores the settings. */
export class Runs {
  readonly #options: RunsOptions
  readonly #serial = new KeyedMutex()

  constructor(options: RunsOptions) {
    this.#options = options
  }

  start(uuid: string, plan: VmPlan): Promise<void> {
    return this.#serial.run(uuid, async () => {
      const machine = await this.#restored(await this.#options.machines.get(uuid))
      if (machine.state !== 'stopped' && machine.state !== 'saved')
        throw conflict(`The VM ${JSON.stringify(machine.name)} is already running`)
      await this.#requireAdapters(machine, plan)
      await this.#requireScreen(plan)
      try {
        await this.#launch(machine, plan)
      } catch (error) {
        await this.#abandon(uuid)
        throw error
      }
    })
  }

  stop(uuid: string, how: StopMode, signal?: AbortSignal): Promise<void> {
    return this.#serial.run(uuid, async () => {
      const machine = await this.#options.machines.find(uuid)
      if (machine === undefined) return
      if (machine.state === 'started' || machine.state === 'suspended') await this.#end(machine, how, signal)
      await this.#tryRestore(uuid)
    })
  }

  /** Restores the settings of a stopped VM, unless another operation on it runs. Returns the VM as it is then. */
  async settle(machine: VirtualBoxVm): Promise<VirtualBoxVm> {
    const { uuid } = machine
    if (machine.state !== 'stopped' || machine.isInUse || this.#serial.isBusy(uuid)) return machine
    if ((await this.#options.records.get(uuid)) === undefined) return machine
    await this.#serial.run(uuid, () => this.#tryRestore(uuid))
    return await this.#options.machines.get(uuid)
  }

  /** Drops the record of a VM. */
  async forget(uuid: string): Promise<void> {
    await this.#options.records.remove(uuid)
    await this.#options.sockets.remove(uuid)
  }

  /** The settings before the run, if they are not restored yet. */
  before(uuid: string): Promise<RunRecord | undefined> {
    return this.#options.records.get(uuid)
  }

  /** Whether the service started the run: a run of the user has other settings. */
  isOurs({ uuid, serialPort }: VirtualBoxVm): boolean {
    return serialPort.mode === `server,${this.#options.sockets.path(uuid)}`
  }

  setCarrier(uuid: string, adapter: VmAdapter): Promise<void> {
    // A separate mutex: a start or stop can take minutes, and the caller serialises operations on a node anyway.
    return this.#serial.run(`${uuid}/carrier`, () => this.#setCarrier(uuid, adapter))
  }

  async #setCarrier(uuid: string, { index, guestPort, switchPort, carrier }: VmAdapter): Promise<void> {
    const machine = await this.#options.machines.get(uuid)
    if (machine.state !== 'started' && machine.state !== 'suspended') return
    const number = index + 1
    const adapter = machine.adapter(number)
    const control = (...args: string[]) => this.#options.machines.run('controlvm', uuid, ...args)
    if (isTunnel(adapter)) await control(`setlinkstate${number}`, carrier ? 'on' : 'off')
    else if (carrier) {
      if (!isFree(adapter) || adapter.attachment === 'none') throw inUse(machine, adapter)
      await control(`nic${number}`, 'generic', 'UDPTunnel')
      await control(`nicproperty${number}`, `sport=${guestPort}`)
      await control(`nicproperty${number}`, 'dest=127.0.0.1')
      await control(`nicproperty${number}`, `dport=${switchPort}`)
      await control(`setlinkstate${number}`, 'on')
      const now = await this.#options.machines.get(uuid)
      if (!isTunnel(now.adapter(number)))
        this.#options.log.warn({ vm: uuid, adapter: index }, 'VirtualBox did not accept a link')
    }
  }

  async #requireAdapters(machine: VirtualBoxVm, { adapters }: VmPlan): Promise<void> {
    const limit = await this.maxAdapters(machine)
    const count = Math.max(0, ...adapters.map(({ index }) => index + 1))
    if (count > limit) throw conflict(`The VM ${JSON.stringify(machine.name)} can have ${limit} adapters, got ${count}`)
  }

  async maxAdapters(machine: VirtualBoxVm): Promise<number> {
    return machine.chipset === 'ich9' ? (await this.#options.machines.installation()).ich9Adapters : 8
  }

  async #requireScreen({ screen }: VmPlan): Promise<void> {
    // The user may have installed the pack meanwhile.
    if (screen === undefined || (await this.#options.machines.installation(true)).screenPack === 'VNC') return
    throw conflict(
      'VirtualBox serves screens by VNC only with its extension pack VNC: install it, then VBoxManage setproperty vrdeextpack VNC',
    )
  }

  async #launch(stopped: VirtualBoxVm, plan: VmPlan): Promise<void> {
    const { uuid } = stopped
    const serialPath = this.#options.sockets.path(uuid)
    const notes = await this.#options.machines.adapterNotes(uuid)
    let record = joined(
      await this.#options.records.get(uuid),
      runRecordOf({ machine: stopped, notes, plan, serialPath }),
    )
    await this.#options.records.put(record)
    const hidden = revealing(record)
    if (hidden.length > 0) {
      await this.#options.machines.modify(uuid, hidden)
      const shown = await this.#options.machines.get(uuid)
      record = revealed(record, shown, await this.#options.machines.adapterNotes(uuid))
      await this.#options.records.put(record)
    }
    await this.#options.sockets.prepare(uuid)
    await this.#options.machines.modify(uuid, preparing(record, { machine: stopped, notes, plan, serialPath }))
    await this.#options.machines.run('startvm', uuid, ...(plan.headless ? ['--type', 'headless'] : []))
    if (plan.node !== undefined) await this.#setProperties(uuid, plan.node)
    if (record.serialPort !== undefined) await this.#options.sockets.waitFor(uuid, this.#options.times.serialMs)
  }

  /** Sets guest properties with the name and directory of the node; VirtualBox drops them at the stop. */
  async #setProperties(uuid: string, { name, directory }: NonNullable<VmPlan['node']>): Promise<void> {
    const set = (key: string, value: string) =>
      this.#options.machines.run('guestproperty', 'set', uuid, key, value, '--flags', 'TRANSIENT')
    try {
      await set('NameInGNS3', name)
      await set('ProjectDirInGNS3', directory)
    } catch (cause) {
      this.#options.log.warn({ vm: uuid, cause }, 'the guest properties of a VM could not be set')
    }
  }

  /** Ends the VM after a failed start, and restores its settings. Never rejects. */
  async #abandon(uuid: string): Promise<void> {
    try {
      if ((await this.#options.records.get(uuid)) === undefined) return
      const machine = await this.#options.machines.find(uuid)
      if (machine === undefined) return
      if (this.isOurs(machine) && (machine.state === 'started' || machine.state === 'suspended'))
        await this.#end(machine, 'power_off')
    } catch (cause) {
      this.#options.log.warn({ vm: uuid, cause }, 'a VM whose start failed could not be ended')
    }
    await this.#tryRestore(uuid)
  }

  /** Restores the settings; a failure is repeated when the VM is next found stopped. Never rejects. */
  async #tryRestore(uuid: string): Promise<void> {
    try {
      if ((await this.#options.records.get(uuid)) === undefined) return
      await this.#restored(await this.#options.machines.get(uuid))
    } catch (cause) {
      this.#options.log.warn({ vm: uuid, cause }, 'the settings of a stopped VM could not be restored yet')
    }
  }

  async #end(machine: VirtualBoxVm, how: StopMode, signal?: AbortSignal): Promise<void> {
    const { uuid } = machine
    const control = (word: string) => this.#options.machines.run('controlvm', uuid, word)
    const { shutdownMs, settleMs } = this.#options.times
    if (machine.isStuck || how === 'power_off') await control('poweroff')
    else if (how === 'save_vm_state') {
      // The save of a large memory takes longer than the timeout of a command; VirtualBox goes on.
      await control('savestate').catch((error: unknown) => {
        if (!hasTimedOut(error)) throw error
      })
    } else {
      // A paused guest does not see its power button.
      if (machine.state === 'suspended') await control('resume')
      await control('acpipowerbutton')
      await this.#ended(uuid, shutdownMs, signal, 'The guest did not obey its power button')
    }
    await this.#ended(uuid, how === 'save_vm_state' ? shutdownMs : settleMs, signal, 'VirtualBox did not end the VM')
  }

  /** Resolves when the VM has stopped and its session is closed; 409 with `message` after `ms`. */
  async #ended(uuid: string, ms: number, signal: AbortSignal | undefined, message: string): Promise<void> {
    const end = performance.now() + ms
    for (;;) {
      const machine = await this.#options.machines.find(uuid)
      const hasEnded = machine === undefined || machine.state === 'stopped' || machine.state === 'saved'
      if (hasEnded && machine?.isInUse !== true) return
      const isLate = performance.now() > end
      if (isLate && hasEnded) return
      if (isLate) throw conflict(`${message} within ${ms / 1000} s`)
      await pause(this.#options.times.pollMs, undefined, { ...(signal !== undefined && { signal }) }).catch(() => {
        throw conflict('The wait for the end of the VM was cancelled')
      })
    }
  }

  /** Restores the settings of a stopped VM. Returns the VM as it is then. */
  async #restored(machine: VirtualBoxVm): Promise<VirtualBoxVm> {
    const { uuid } = machine
    const record = await this.#options.records.get(uuid)
    // Most settings of a saved VM cannot be changed.
    if (record === undefined || machine.state !== 'stopped') return machine
    const options = restoring(record, machine)
    await this.#modifyWhenFree(uuid, options)
    await this.forget(uuid)
    return options.length > 0 ? await this.#options.machines.get(uuid) : machine
  }

  async #modifyWhenFree(uuid: string, options: readonly string[]): Promise<void> {
    const end = performance.now() + this.#options.times.settleMs
    for (;;) {
      try {
        return await this.#options.machines.modify(uuid, options)
      } catch (error) {
        if (!isLocked(error) || performance.now() > end) throw error
      }
      await pause(this.#options.times.pollMs)
    }
  }
}

/** Merges records: settings that the earlier run had changed keep their value from before that run. */
function joined(earlier: RunRecord | undefined, later: RunRecord): RunRecord {
  if (earlier === undefined) return later
  const isNew = ({ number }: RunRecord['adapters'][number]) => !earlier.adapters.some((each) => each.number === number)
  const { serialPort } = earlier
  return {
    ...later,
    ...earlier,
    ...(serialPort !== undefined && { serialPort: { ...serialPort, set: later.serialPort?.set ?? serialPort.set } }),
    adapters: [...earlier.adapters, ...later.adapters.filter(isNew)],
  }
}
