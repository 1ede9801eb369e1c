import { setTimeout as pause } from 'node:timers/promises'
import { KeyedMutex } from '../../../../../src/async/keyed-mutex.ts'
import { conflict } from '../../../../../src/errors/api-error.ts'
import type { Log } from '../../../log/log.ts'
import type { VmAdapter, VmEnding, VmPlan } from '../driver.ts'
import { hasTimedOut, isLocked } from './failure.ts'
import type { VirtualBoxVm } from './machine.ts'
import type { Machines } from './machines.ts'
import { inUse, isFree, isTunnel, preparing, revealed, revealing, runRecordOf } from './preparation.ts'
import { restoring } from './restoration.ts'
import type { RunRecord, RunRecords } from './run-record.ts'
import type { SerialSockets } from './serial-sockets.ts'

export interface RunTimes {
  /** How long a guest may take to obey its power button, ms. */
  readonly shutdownMs: number
  /** How long VirtualBox may take to let go of a machine that has stopped, or to save its memory, ms. */
  readonly settleMs: number
  /** How long the socket of the serial port may take to appear, ms. */
  readonly serialMs: number
  /** Between two looks at a machine that is to change, ms. */
  readonly lookMs: number
}

export const defaultTimes: RunTimes = { shutdownMs: 120_000, settleMs: 10_000, serialMs: 10_000, lookMs: 500 }

export interface RunsOptions {
  readonly machines: Machines
  readonly records: RunRecords
  readonly sockets: SerialSockets
  readonly log: Log
  readonly times: RunTimes
}

/** How machines run: made ready, started, stopped, and put back as they were. */
export class Runs {
  readonly #machines: Machines
  readonly #records: RunRecords
  readonly #sockets: SerialSockets
  readonly #log: Log
  readonly #times: RunTimes
  readonly #serial = new KeyedMutex()

  constructor({ machines, records, sockets, log, times }: RunsOptions) {
    this.#machines = machines
    this.#records = records
    this.#sockets = sockets
    this.#log = log
    this.#times = times
  }

  start(uuid: string, plan: VmPlan): Promise<void> {
    return this.#serial.run(uuid, async () => {
      const machine = await this.#restored(await this.#machines.get(uuid))
      if (machine.state !== 'stopped' && machine.state !== 'saved') {
        throw conflict(`The VM ${JSON.stringify(machine.name)} runs already`)
      }
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

  stop(uuid: string, how: VmEnding, signal?: AbortSignal): Promise<void> {
    return this.#serial.run(uuid, async () => {
      const machine = await this.#machines.find(uuid)
      if (machine === undefined) return
      if (machine.state === 'started' || machine.state === 'suspended') await this.#end(machine, how, signal)
      await this.#putBack(uuid)
    })
  }

  /** The machine; put back as it was when it has stopped, unless something is done with it now. */
  async settle(machine: VirtualBoxVm): Promise<VirtualBoxVm> {
    const { uuid } = machine
    if (machine.state !== 'stopped' || machine.isInUse || this.#serial.isBusy(uuid)) return machine
    if ((await this.#records.get(uuid)) === undefined) return machine
    await this.#serial.run(uuid, () => this.#putBack(uuid))
    return await this.#machines.get(uuid)
  }

  /** Of a machine that is gone for good. */
  async forget(uuid: string): Promise<void> {
    await this.#records.remove(uuid)
    await this.#sockets.remove(uuid)
  }

  /** What it was before it was made ready, if it is not what it was. */
  before(uuid: string): Promise<RunRecord | undefined> {
    return this.#records.get(uuid)
  }

  /** One that somebody else started would not have our settings. */
  isOurs({ uuid, serialPort }: VirtualBoxVm): boolean {
    return serialPort.mode === `server,${this.#sockets.path(uuid)}`
  }

  setCarrier(uuid: string, adapter: VmAdapter): Promise<void> {
    // Not behind a start or stop, which can take minutes: whoever runs nodes does one thing with one at a time.
    return this.#serial.run(`${uuid}/carrier`, () => this.#setCarrier(uuid, adapter))
  }

  async #setCarrier(uuid: string, { index, guestPort, switchPort, carrier }: VmAdapter): Promise<void> {
    const machine = await this.#machines.get(uuid)
    if (machine.state !== 'started' && machine.state !== 'suspended') return
    const number = index + 1
    const adapter = machine.adapter(number)
    const control = (...args: string[]) => this.#machines.run('controlvm', uuid, ...args)
    if (isTunnel(adapter)) {
      await control(`setlinkstate${number}`, carrier ? 'on' : 'off')
    } else if (carrier) {
      if (!isFree(adapter) || adapter.attachment === 'none') throw inUse(machine, adapter)
      await control(`nic${number}`, 'generic', 'UDPTunnel')
      await control(`nicproperty${number}`, `sport=${guestPort}`)
      await control(`nicproperty${number}`, 'dest=127.0.0.1')
      await control(`nicproperty${number}`, `dport=${switchPort}`)
      await control(`setlinkstate${number}`, 'on')
      const now = await this.#machines.get(uuid)
      if (!isTunnel(now.adapter(number))) this.#log.warn({ vm: uuid, adapter: index }, 'VirtualBox did not take a link')
    }
  }

  async #requireAdapters(machine: VirtualBoxVm, { adapters }: VmPlan): Promise<void> {
    const most = await this.maxAdapters(machine)
    const wanted = Math.max(0, ...adapters.map(({ index }) => index + 1))
    if (wanted > most) throw conflict(`The VM ${JSON.stringify(machine.name)} can have ${most} adapters, got ${wanted}`)
  }

  async maxAdapters(machine: VirtualBoxVm): Promise<number> {
    return machine.chipset === 'ich9' ? (await this.#machines.installation()).ich9Adapters : 8
  }

  async #requireScreen({ screen }: VmPlan): Promise<void> {
    // The pack may have come since VirtualBox was asked.
    if (screen === undefined || (await this.#machines.installation({ isFresh: true })).screenPack === 'VNC') return
    throw conflict(
      'VirtualBox serves screens by VNC only with its extension pack VNC: install it, then VBoxManage setproperty vrdeextpack VNC',
    )
  }

  async #launch(stopped: VirtualBoxVm, plan: VmPlan): Promise<void> {
    const { uuid } = stopped
    const serialPath = this.#sockets.path(uuid)
    const notes = await this.#machines.adapterNotes(uuid)
    let record = joined(await this.#records.get(uuid), runRecordOf({ machine: stopped, notes, plan, serialPath }))
    await this.#records.put(record)
    const hidden = revealing(record)
    if (hidden.length > 0) {
      await this.#machines.modify(uuid, hidden)
      const shown = await this.#machines.get(uuid)
      record = revealed(record, shown, await this.#machines.adapterNotes(uuid))
      await this.#records.put(record)
    }
    await this.#sockets.prepare(uuid)
    await this.#machines.modify(uuid, preparing(record, { machine: stopped, notes, plan, serialPath }))
    await this.#machines.run('startvm', uuid, ...(plan.headless ? ['--type', 'headless'] : []))
    if (plan.node !== undefined) await this.#tell(uuid, plan.node)
    if (record.serialPort !== undefined) await this.#sockets.appears(uuid, this.#times.serialMs)
  }

  /** VirtualBox forgets it when the machine stops. */
  async #tell(uuid: string, { name, directory }: NonNullable<VmPlan['node']>): Promise<void> {
    const set = (key: string, value: string) =>
      this.#machines.run('guestproperty', 'set', uuid, key, value, '--flags', 'TRANSIENT')
    try {
      await set('NameInGNS3', name)
      await set('ProjectDirInGNS3', directory)
    } catch (cause) {
      this.#log.warn({ vm: uuid, cause }, 'a guest could not be told of its node')
    }
  }

  /** After a start that failed: it does not run, and is as it was. Never rejects. */
  async #abandon(uuid: string): Promise<void> {
    try {
      if ((await this.#records.get(uuid)) === undefined) return
      const machine = await this.#machines.find(uuid)
      if (machine === undefined) return
      if (this.isOurs(machine) && (machine.state === 'started' || machine.state === 'suspended'))
        await this.#end(machine, 'power_off')
    } catch (cause) {
      this.#log.warn({ vm: uuid, cause }, 'a VM whose start failed could not be ended')
    }
    await this.#putBack(uuid)
  }

  /** What cannot be put back now is when the machine is next found stopped. Never rejects. */
  async #putBack(uuid: string): Promise<void> {
    try {
      if ((await this.#records.get(uuid)) === undefined) return
      await this.#restored(await this.#machines.get(uuid))
    } catch (cause) {
      this.#log.warn({ vm: uuid, cause }, 'the settings of a VM that has stopped could not be put back yet')
    }
  }

  async #end(machine: VirtualBoxVm, how: VmEnding, signal?: AbortSignal): Promise<void> {
    const { uuid } = machine
    const control = (word: string) => this.#machines.run('controlvm', uuid, word)
    const { shutdownMs, settleMs } = this.#times
    if (machine.isStuck || how === 'power_off') {
      await control('poweroff')
    } else if (how === 'save_vm_state') {
      // The memory of a large machine takes longer to write than a command may: it goes on by itself.
      await control('savestate').catch((error: unknown) => {
        if (!hasTimedOut(error)) throw error
      })
    } else {
      // One that is paused would not notice.
      if (machine.state === 'suspended') await control('resume')
      await control('acpipowerbutton')
      await this.#ended(uuid, shutdownMs, signal, 'The guest did not obey its power button')
    }
    await this.#ended(uuid, how === 'save_vm_state' ? shutdownMs : settleMs, signal, 'VirtualBox did not end the VM')
  }

  /** Resolves when the machine has stopped and nobody has it any more. */
  async #ended(uuid: string, ms: number, signal: AbortSignal | undefined, otherwise: string): Promise<void> {
    const end = performance.now() + ms
    for (;;) {
      const machine = await this.#machines.find(uuid)
      const isOver = machine === undefined || machine.state === 'stopped' || machine.state === 'saved'
      if (isOver && machine?.isInUse !== true) return
      const isLate = performance.now() > end
      if (isLate && isOver) return
      if (isLate) throw conflict(`${otherwise} within ${ms / 1000} s`)
      await pause(this.#times.lookMs, undefined, { ...(signal !== undefined && { signal }) }).catch(() => {
        throw conflict('The end of the VM is not waited for any longer')
      })
    }
  }

  /** The machine, put back as it was when it has stopped. */
  async #restored(machine: VirtualBoxVm): Promise<VirtualBoxVm> {
    const { uuid } = machine
    const record = await this.#records.get(uuid)
    // What of one whose memory is saved can be changed is not enough.
    if (record === undefined || machine.state !== 'stopped') return machine
    const options = restoring(record, machine)
    await this.#modifyWhenFree(uuid, options)
    await this.forget(uuid)
    return options.length > 0 ? await this.#machines.get(uuid) : machine
  }

  async #modifyWhenFree(uuid: string, options: readonly string[]): Promise<void> {
    const end = performance.now() + this.#times.settleMs
    for (;;) {
      try {
        return await this.#machines.modify(uuid, options)
      } catch (error) {
        if (!isLocked(error) || performance.now() > end) throw error
      }
      await pause(this.#times.lookMs)
    }
  }
}

/** The later record; of what was changed already before it, the earlier one knows what it was. */
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
