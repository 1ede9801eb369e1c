import { causeOf } from '../../compute/remote/answer.ts'
import { abortable } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { SerialQueue } from '../../lib/async/serial-queue.ts'
import { ApiError, conflict, notFound } from '../../lib/errors/api-error.ts'
import {
  type ApplianceEngineName,
  type ApplianceEngineShown,
  type ApplianceVmRecord,
  type ApplianceVmUpdate,
  defaultAppliance,
  type ApplianceVm as Settings,
} from '../../model/appliance-vm.ts'
import { applianceId } from '../../model/compute.ts'
import type { Fleet } from '../pool/fleet.ts'
import type { ApplianceAddress, ApplianceEngine, ApplianceStore } from './appliance-engine.ts'
import { computeRecord, isSameVm, merged } from './appliance-record.ts'
import { type ApplianceTimeouts, answering, defaultApplianceTimeouts, progress } from './appliance-start.ts'
import { checkSubnetLater } from './subnet-check.ts'

export interface ApplianceVmOptions {
  readonly fleet: Fleet
  /** Of this runtime. */
  readonly engines: Readonly<Partial<Record<ApplianceEngineName, ApplianceEngine>>>
  readonly store: ApplianceStore
  readonly timeouts?: Partial<ApplianceTimeouts>
}

/** `on`: the service in the VM is the compute `vm`. Only `starting` changes without a cause from outside. */
export type ApplianceState = 'off' | 'starting' | 'on' | 'failed'

/** Starts, watches and ends the VM whose service is the compute `vm` of the fleet. Changes run one at a time. */
export class ApplianceVmService {
  readonly #fleet: Fleet
  readonly #engines: ApplianceVmOptions['engines']
  readonly #store: ApplianceStore
  readonly #timeouts: ApplianceTimeouts
  #settings: ApplianceVmRecord
  #state: ApplianceState = 'off'
  /** The settings of the VM that this service started, and must end. */
  #held: ApplianceVmRecord | undefined
  /** The settings of a VM that could not be ended. */
  #unended: ApplianceVmRecord | undefined
  #address: ApplianceAddress | undefined
  /** Aborts the current start. */
  #cancel: AbortController | undefined
  /** Ends the wait for the guest at the end of the VM. */
  #skipGracePeriod: AbortController | undefined
  /** The call that starts the VM; it may outlive the request that made it. */
  #launch: Promise<void> = Promise.resolve()
  #unwatch = () => {}
  #uncheck = () => {}
  #isLooking = false
  #failure: { readonly reason: string; readonly at: number } | undefined
  #attempt: Promise<void> | undefined
  readonly #writing = new SerialQueue()
  readonly #working = new SerialQueue()
  #isClosed = false

  private constructor({ fleet, engines, store, timeouts }: ApplianceVmOptions, settings: ApplianceVmRecord) {
    this.#fleet = fleet
    this.#engines = engines
    this.#store = store
    this.#timeouts = { ...defaultApplianceTimeouts, ...timeouts }
    this.#settings = settings
  }

  /** Loads the settings; does not start the VM. */
  static async open(options: ApplianceVmOptions): Promise<ApplianceVmService> {
    return new ApplianceVmService(options, { ...defaultAppliance, ...(await options.store.load()) })
  }

  get state(): ApplianceState {
    return this.#state
  }

  get settings(): Settings {
    return viewOf(this.#settings)
  }

  engines(): ApplianceEngineShown[] {
    return Object.values(this.#engines).map(({ view: shown }) => shown)
  }

  /** Names of VMs; none where the engine is absent and not in use. 404 for an unknown engine. */
  async vms(name: string): Promise<readonly string[]> {
    const engine = Object.hasOwn(this.#engines, name) ? this.#engines[name as ApplianceEngineName] : undefined
    if (engine === undefined) {
      throw notFound(
        `engine: expected ${Object.keys(this.#engines).join(', ')}, got ${JSON.stringify(name.slice(0, 100))}`,
      )
    }
    try {
      return await engine.vms()
    } catch (error) {
      if (this.#settings.enable || !(error instanceof ApiError)) throw error
      return []
    }
  }

  /**
   * Saves the settings, cancels the work for older settings, then ends, starts or changes the VM, and resolves when this is done.
   * 409 when it fails: the settings stay saved.
   */
  async update(changes: ApplianceVmUpdate): Promise<Settings> {
    const wanted = await this.#writing.run(() => this.#save(changes))
    this.#failure = undefined
    await this.#working.run(() => this.#converge(wanted))
    return viewOf(wanted)
  }

  /** Starts the VM if it is enabled: at the start of the service, and before a request to its compute. 409 when that fails. */
  async ready(signal?: AbortSignal): Promise<void> {
    const { enable, vmname } = this.#settings
    if (!enable || vmname === null || this.#state === 'on' || this.#isClosed) return
    const failure = this.#failure
    if (failure !== undefined && performance.now() - failure.at < this.#timeouts.againMs) throw conflict(failure.reason)
    this.#attempt ??= this.#working
      .run(() => this.#converge(this.#settings))
      .finally(() => {
        this.#attempt = undefined
      })
    await (signal === undefined ? this.#attempt : abortable(this.#attempt, signal))
  }

  /** Ends the VM at the end of the service, as the settings say. It has a timeout, and never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel?.abort(ending())
    await this.#writing.idle()
    const { exitMs } = this.#timeouts
    const under = this.#skipGracePeriod
    const soon = setTimeout(() => under?.abort(), exitMs)
    const ended = this.#working.run(() => {
      this.#held ??= this.#unended
      return this.#release(exitMs)
    })
    await abortable(ended, AbortSignal.timeout(2 * exitMs)).catch(ignore('the compute `vm` shows the failure'))
    clearTimeout(soon)
  }

  async #save(changes: ApplianceVmUpdate): Promise<ApplianceVmRecord> {
    if (this.#isClosed) throw ending()
    const wanted = merged(this.#settings, changes)
    const isNew = JSON.stringify(wanted) !== JSON.stringify(this.#settings)
    if (!isNew) return wanted
    if (wanted.enable) this.#engine(wanted)
    await this.#store.save(wanted)
    const isOther = !isSameUse(wanted, this.#settings)
    this.#settings = wanted
    if (isOther) this.#cancel?.abort(superseded())
    return wanted
  }

  /** Brings the VM to the state in the settings; 409 when newer settings arrived. */
  async #converge(settings: ApplianceVmRecord): Promise<void> {
    this.#requireCurrent(settings)
    // Tries again to end the same VM; another VM does not depend on it.
    if (this.#unended !== undefined && isSameVm(this.#unended, settings)) this.#held ??= this.#unended
    this.#unended = undefined
    const isWanted = settings.enable && settings.vmname !== null
    if (this.#held !== undefined && !(isWanted && isSameVm(this.#held, settings))) {
      await this.#release(this.#timeouts.endMs)
      this.#requireCurrent(settings)
    }
    if (!isWanted) return this.#off()
    if (this.#state !== 'on') await this.#start(settings)
  }

  #requireCurrent(settings: ApplianceVmRecord): void {
    if (this.#isClosed) throw ending()
    if (!isSameUse(settings, this.#settings)) throw superseded()
  }

  async #start(settings: ApplianceVmRecord): Promise<void> {
    const engine = this.#engine(settings)
    const cancel = new AbortController()
    this.#cancel = cancel
    const { signal } = cancel
    const seconds = this.#timeouts.startMs / 1000
    const late = setTimeout(
      () => cancel.abort(conflict(`no Patchbay answered in it within ${seconds} s`)),
      this.#timeouts.startMs,
    )
    this.#state = 'starting'
    const report = progress(this.#fleet, settings)
    try {
      report('is starting')
      this.#held = settings
      this.#launch = engine.start(settings, signal)
      await abortable(this.#launch, signal)
      this.#address = await answering({
        fleet: this.#fleet,
        engine,
        settings,
        signal,
        timeouts: this.#timeouts,
        report,
      })
      this.#fleet.registerEphemeral(computeRecord(settings, this.#address))
      await abortable(this.#fleet.connect(applianceId), signal)
      this.#state = 'on'
      this.#failure = undefined
      this.#unwatch = engine.watch(settings, () => void this.#look())
      this.#uncheck = checkSubnetLater(this.#fleet, settings, this.#timeouts.checkMs)
      void this.#look()
    } catch (error) {
      throw this.#failed(settings, 'was not started', error)
    } finally {
      clearTimeout(late)
      this.#cancel = undefined
    }
  }

  /** Ends the VM as the current settings say. Afterwards this service no longer manages it, even after a failure. */
  async #release(ms: number): Promise<void> {
    const held = this.#held
    const { when_exit: how } = this.#settings
    this.#leave()
    this.#held = undefined
    this.#address = undefined
    if (held === undefined) return this.#off()
    const skipGracePeriod = new AbortController()
    this.#skipGracePeriod = skipGracePeriod
    const timer = setTimeout(() => skipGracePeriod.abort(), ms)
    try {
      await abortable(this.#launch, skipGracePeriod.signal).catch(
        ignore('a cancelled start may still start the VM, which is ended below'),
      )
      if (how !== 'keep') {
        // No progress for a VM that has ended by itself.
        if (this.#state !== 'off')
          progress(this.#fleet, held)(how === 'suspend' ? 'is being suspended' : 'is being stopped')
        await this.#engine(held).end(held, how, skipGracePeriod.signal)
      }
      this.#off()
    } catch (error) {
      this.#unended = held
      throw this.#failed(held, `was not ${how === 'suspend' ? 'suspended' : 'stopped'}`, error)
    } finally {
      clearTimeout(timer)
      this.#skipGracePeriod = undefined
    }
  }

  /** Handles a change of the VM from outside. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const look = async () => {
      this.#isLooking = false
      const held = this.#held
      if (held === undefined || this.#state !== 'on') return
      const engine = this.#engine(held)
      if (!(await engine.isRunning(held))) {
        // It may only be paused, so this service still manages it.
        this.#leave()
        return this.#off()
      }
      const addresses = await engine.addresses(held)
      const [first] = addresses
      if (first === undefined || addresses.some((address) => JSON.stringify(address) === JSON.stringify(this.#address)))
        return
      this.#address = first
      this.#fleet.registerEphemeral(computeRecord(held, first))
    }
    await this.#working.run(look).catch(ignore('the next change that the engine reports leads here again'))
  }

  #leave(): void {
    this.#unwatch()
    this.#uncheck()
    this.#unwatch = () => {}
    this.#uncheck = () => {}
  }

  #off(): void {
    this.#state = 'off'
    this.#address = undefined
    this.#fleet.unregister(applianceId)
  }

  #failed(settings: ApplianceVmRecord, what: string, error: unknown): ApiError {
    const reason = `The appliance VM ${JSON.stringify(settings.vmname)} ${what}: ${error instanceof ApiError ? error.message : causeOf(error)}`
    this.#state = 'failed'
    this.#failure = { reason, at: performance.now() }
    this.#fleet.registerEphemeral(computeRecord(settings), reason)
    return conflict(reason, { cause: error })
  }

  #engine({ engine }: ApplianceVmRecord): ApplianceEngine {
    const found = this.#engines[engine]
    if (found === undefined) throw conflict(`engine: this service has no ${engine}`)
    return found
  }
}

function viewOf({ password: _, ...shown }: ApplianceVmRecord): Settings {
  return shown
}

/** Whether both settings want the same VM, or both want none. */
const isSameUse = (a: ApplianceVmRecord, b: ApplianceVmRecord): boolean => a.enable === b.enable && isSameVm(a, b)

const superseded = () => conflict('The settings of the appliance VM were changed meanwhile')
const ending = () => conflict('The service is shutting down')
