import { onAbort } from '../../../../../src/lib/async/abort.ts'
import { withTimeout } from '../../../../../src/lib/async/timeout.ts'
import { ApiError, conflict } from '../../../../../src/lib/errors/api-error.ts'
import type {
  ApplianceDriver,
  ApplianceRun,
  CloneRequest,
  StopMode,
  Vm,
  VmAdapter,
  VmPlan,
  VmState,
} from '../driver.ts'
import { adapterType, adapterTypes } from './adapter-types.ts'
import { LibvirtClient } from './client.ts'
import { requireSound } from './clone-files.ts'
import { type CloneMark, markOf } from './clone-xml.ts'
import { LibvirtClones } from './clones.ts'
import { interfacesOf, isUsed, ramOf } from './definition.ts'
import type { Domain } from './domain.ts'
import { Domains, type DomainTimeouts, domainStates, domainTimeouts } from './domains.ts'
import { GuestAddresses } from './guest-addresses.ts'
import { macIn, maxLibvirtAdapters, recabled } from './interfaces.ts'
import { isRefusal, LibvirtError, libvirtErrors } from './libvirt-error.ts'
import { liveXml, resumedXml, servesSerial } from './live-xml.ts'
import { sizedXml } from './sized-xml.ts'
import { parseXml, xmlText } from './xml.ts'

export interface LibvirtOptions {
  /** Read at each call, so that a changed setting applies at once. */
  readonly uri: () => string
  /** Timeout of a shutdown by the power button, ms. */
  readonly shutdownMs?: number
  readonly timeouts?: DomainTimeouts
}

/** A VM at one moment. */
interface DomainFacts {
  readonly vm: Vm
  /** One of `domainStates`. */
  readonly state: number
  readonly definition: string
  readonly mark: CloneMark | undefined
}

/** The driver for libvirt. Settings of nodes go into the XML of a run; the definition of a VM stays. */
export class LibvirtDriver implements ApplianceDriver {
  readonly name = 'libvirt'
  readonly adapterTypes = adapterTypes
  readonly adapterType = adapterType
  readonly #client: LibvirtClient
  readonly #domains: Domains
  readonly #clones: LibvirtClones
  readonly #addresses: GuestAddresses
  readonly #shutdownMs: number

  constructor({ uri, shutdownMs = 120_000, timeouts = domainTimeouts }: LibvirtOptions) {
    this.#client = new LibvirtClient({ uri })
    this.#domains = new Domains(this.#client, timeouts)
    this.#clones = new LibvirtClones(this.#domains)
    this.#addresses = new GuestAddresses(this.#client)
    this.#shutdownMs = shutdownMs
  }

  async list(): Promise<Vm[]> {
    const vms: Vm[] = []
    for (const domain of await this.#domains.list()) {
      const facts = await this.#read(domain)
      if (facts !== undefined && facts.mark === undefined) vms.push(facts.vm)
    }
    return vms
  }

  async find(name: string): Promise<Vm> {
    const domain = await this.#domains.byName(name)
    const facts = domain && (await this.#read(domain))
    if (facts === undefined) throw conflict(`libvirt has no VM with the name "${name}"`)
    if (facts.mark !== undefined) throw conflict(`The VM "${name}" is a clone of a node`)
    return facts.vm
  }

  get = async (uuid: string): Promise<Vm | undefined> => (await this.#find(uuid))?.facts.vm
  maxAdapters = async (): Promise<number> => maxLibvirtAdapters

  async usedAdapters(uuid: string): Promise<readonly number[]> {
    const { facts } = await this.#must(uuid)
    return interfacesOf(parseXml(facts.definition)).flatMap((adapter, index) => (isUsed(adapter) ? [index] : []))
  }

  async start(uuid: string, plan: VmPlan): Promise<void> {
    const { domain, facts } = await this.#startable(uuid)
    const { vm, definition, mark } = facts
    if (mark !== undefined) await requireSound(mark, vm.name)
    if (vm.state === 'stopped') await this.#domains.createXml(liveXml(definition, uuid, plan))
    else {
      const saved = await this.#domains.managedSaveXml(domain)
      await this.#domains.defineManagedSaveXml(domain, resumedXml(saved, uuid, plan))
      await this.#domains.create(domain)
    }
  }

  async startAppliance(uuid: string, { size }: ApplianceRun): Promise<void> {
    const { domain, facts } = await this.#startable(uuid)
    // A saved VM keeps its size.
    const xml = facts.vm.state === 'saved' || size === undefined ? undefined : sizedXml(facts.definition, size)
    await (xml === undefined ? this.#domains.create(domain) : this.#domains.createXml(xml))
  }

  async reach(uuid: string, port: number): Promise<readonly { host: string; port: number }[]> {
    const { domain } = await this.#must(uuid)
    const macs = new Set(interfacesOf(parseXml(await this.#domains.live(domain))).map(macIn))
    return (await this.#addresses.find(domain, macs)).map((host) => ({ host, port }))
  }

  async stop(uuid: string, how: StopMode, signal?: AbortSignal): Promise<void> {
    const { domain, facts } = (await this.#find(uuid)) ?? {}
    if (domain === undefined || facts === undefined || !isRunning(facts.vm)) return
    if (how === 'power_off') await this.#domains.destroy(domain)
    else if (how === 'shutdown_signal') await this.#shutDown(domain, facts.state, signal)
    else await this.#domains.managedSave(domain)
  }

  async holds(uuid: string, serialPort: number): Promise<boolean> {
    const { domain, facts } = (await this.#find(uuid)) ?? {}
    if (domain === undefined || facts === undefined || !isRunning(facts.vm)) return false
    return servesSerial(parseXml(await this.#domains.live(domain)), serialPort)
  }

  async suspend(uuid: string): Promise<void> {
    await this.#domains.suspend((await this.#must(uuid)).domain)
  }

  async resume(uuid: string): Promise<void> {
    const { domain, facts } = await this.#must(uuid)
    await this.#resume(domain, facts.state)
  }

  async reset(uuid: string): Promise<void> {
    await this.#domains.reset((await this.#must(uuid)).domain)
  }

  async setCarrier(uuid: string, adapter: VmAdapter): Promise<void> {
    const { domain } = await this.#must(uuid)
    // An adapter that was added after the start is not in the VM.
    const changed = recabled(parseXml(await this.#domains.live(domain)), adapter)
    if (changed !== undefined) await this.#domains.updateDevice(domain, xmlText(changed))
  }

  clone = (request: CloneRequest): Promise<Vm> => this.#clones.create(request)

  mayHaveSucceeded(error: unknown): boolean {
    return error instanceof LibvirtError
      ? ['timeout', 'closed', 'protocol'].includes(error.reason)
      : !(error instanceof ApiError)
  }

  async renameClone(uuid: string, name: string): Promise<void> {
    await this.#clones.rename((await this.#must(uuid)).domain, name)
  }

  async openClone(uuid: string, directory: string): Promise<Vm> {
    await this.#clones.open(uuid, directory)
    return (await this.#must(uuid)).facts.vm
  }

  async closeClone(uuid: string): Promise<void> {
    const domain = await this.#domains.byUuid(uuid)
    if (domain !== undefined) await this.#clones.close(domain)
  }

  async removeClone(uuid: string): Promise<void> {
    const domain = await this.#domains.byUuid(uuid)
    if (domain !== undefined) await this.#clones.remove(domain)
  }

  watch = (changed: (uuid: string) => void): (() => void) => this.#client.watch(changed)

  async close(): Promise<void> {
    this.#client.close()
  }

  async #find(uuid: string): Promise<{ domain: Domain; facts: DomainFacts } | undefined> {
    const domain = await this.#domains.byUuid(uuid)
    const facts = domain && (await this.#read(domain))
    return domain && facts && { domain, facts }
  }

  async #must(uuid: string): Promise<{ domain: Domain; facts: DomainFacts }> {
    const found = await this.#find(uuid)
    if (found === undefined) throw conflict(`libvirt no longer has a VM with the id ${uuid}`)
    return found
  }

  /** 409 when the VM runs. */
  async #startable(uuid: string): Promise<{ domain: Domain; facts: DomainFacts }> {
    const found = await this.#must(uuid)
    const { vm, state } = found.facts
    if (isRunning(vm)) throw conflict(`The VM "${vm.name}" is already running`)
    // libvirt may preserve a crashed VM.
    if (state === domainStates.crashed) await this.#domains.destroy(found.domain)
    return found
  }

  /** Undefined when the VM is gone. */
  async #read(domain: Domain): Promise<DomainFacts | undefined> {
    try {
      const [definition, state, isSaved] = await Promise.all([
        this.#domains.definition(domain),
        this.#domains.state(domain),
        this.#domains.hasManagedSave(domain),
      ])
      const xml = parseXml(definition)
      const vm = { uuid: domain.uuid, name: domain.name, ram: ramOf(xml), state: vmState(state, isSaved) }
      return { vm, state, definition, mark: markOf(xml) }
    } catch (error) {
      if (isRefusal(error, libvirtErrors.noDomain)) return undefined
      throw error
    }
  }

  async #resume(domain: Domain, state: number): Promise<void> {
    await (state === domainStates.pmSuspended ? this.#domains.wake(domain) : this.#domains.resume(domain))
  }

  /** Presses the power button, and waits until the VM has ended; 409 after the timeout, or when the signal aborts. */
  async #shutDown(domain: Domain, state: number, signal: AbortSignal | undefined): Promise<void> {
    let unwatch = () => {}
    let stopListening = () => {}
    // False when libvirt does not answer: after a reconnect the client reports all VMs again.
    const hasEnded = async () => {
      const facts = await this.#read(domain)
      return facts === undefined || !isRunning(facts.vm)
    }
    const end = async () => {
      // A paused guest does not see its power button.
      if (vmState(state, false) === 'suspended') await this.#resume(domain, state)
      await this.#domains.pressPowerButton(domain)
    }
    try {
      const stopped = new Promise<void>((resolve, reject) => {
        stopListening = onAbort(signal, () =>
          reject(conflict(`The wait for the end of "${domain.name}" was cancelled`)),
        )
        if (signal?.aborted) return
        const check = () => hasEnded().catch(() => false)
        unwatch = this.#client.watch((uuid) => {
          if (uuid === domain.uuid) void check().then((ended) => ended && resolve())
        })
        end().catch((error) => check().then((ended) => (ended ? resolve() : reject(error))))
      })
      const seconds = this.#shutdownMs / 1000
      await withTimeout(stopped, this.#shutdownMs, () => {
        throw conflict(`The guest of "${domain.name}" did not shut down within ${seconds} s of its power button`)
      })
    } finally {
      unwatch()
      stopListening()
    }
  }
}

const isRunning = ({ state }: Vm): boolean => state === 'started' || state === 'suspended'

function vmState(state: number, isSaved: boolean): VmState {
  switch (state) {
    case domainStates.shutoff:
    case domainStates.noState:
      return isSaved ? 'saved' : 'stopped'
    case domainStates.crashed:
      return 'stopped'
    case domainStates.paused:
    case domainStates.pmSuspended:
      return 'suspended'
    default:
      return 'started'
  }
}
