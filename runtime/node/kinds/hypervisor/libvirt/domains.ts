import type { LibvirtClient } from './client.ts'
import { type Domain, isDomainUuid, readDomain, uuidContent, writeDomain } from './domain.ts'
import { isRefusal, libvirtErrors } from './libvirt-error.ts'
import { procedures } from './protocol.ts'
import { type XdrReader, XdrWriter } from './xdr.ts'

/** Bounds, ms: of what is looked up, of what waits for its turn at a VM (libvirt gives up after 30 s), of what takes long. */
export interface DomainBounds {
  readonly look: number
  readonly act: number
  readonly run: number
  readonly save: number
}

export const domainBounds: DomainBounds = { look: 15_000, act: 40_000, run: 180_000, save: 900_000 }

/** virDomainState. */
export const domainStates = {
  noState: 0,
  running: 1,
  blocked: 2,
  paused: 3,
  shutdown: 4,
  shutoff: 5,
  crashed: 6,
  pmSuspended: 7,
} as const

/** virDomainUndefineFlagsValues. */
const undefining = { managedSave: 1, snapshots: 2, nvram: 4, keepNvram: 8, checkpoints: 16 } as const
const xmlFlags = { secure: 1, inactive: 2 } as const
const listFlags = { persistent: 4 } as const
const acpiPowerButton = 1
/** VIR_DOMAIN_SAVE_RUNNING: it runs when it is gone on from, though it may stand still now. */
const savedRunning = 2
const affectLive = 1

/** Two of the five calls that libvirt takes from a client at once are left for short ones. */
const maxLong = 3

/** What is asked of VMs, call by call. */
export class Domains {
  readonly #client: LibvirtClient
  readonly #timeouts: DomainBounds
  #long = 0
  readonly #waiting: (() => void)[] = []

  constructor(client: LibvirtClient, timeouts: DomainBounds) {
    this.#client = client
    this.#timeouts = timeouts
  }

  /** Those that have a definition. */
  async list(): Promise<Domain[]> {
    const args = new XdrWriter().int(1).uint(listFlags.persistent)
    return (await this.#look(procedures.connectListAllDomains, args)).array(readDomain)
  }

  byName(name: string): Promise<Domain | undefined> {
    return this.#found(procedures.domainLookupByName, new XdrWriter().string(name))
  }

  async byUuid(uuid: string): Promise<Domain | undefined> {
    if (!isDomainUuid(uuid)) return undefined
    return this.#found(procedures.domainLookupByUuid, new XdrWriter().fixed(uuidContent(uuid)))
  }

  /** Its definition, secrets included: what is made of it must be as good. */
  async definition(domain: Domain): Promise<string> {
    const args = of(domain).uint(xmlFlags.inactive | xmlFlags.secure)
    return (await this.#look(procedures.domainGetXmlDesc, args)).string()
  }

  /** What runs now. */
  async live(domain: Domain): Promise<string> {
    return (await this.#look(procedures.domainGetXmlDesc, of(domain).uint(xmlFlags.secure))).string()
  }

  /** One of `domainStates`. */
  async state(domain: Domain): Promise<number> {
    return (await this.#look(procedures.domainGetState, of(domain).uint(0))).int()
  }

  async hasManagedSave(domain: Domain): Promise<boolean> {
    return (await this.#look(procedures.domainHasManagedSaveImage, of(domain).uint(0))).int() !== 0
  }

  /** Of a disk (`vda`), bytes. */
  async capacity(domain: Domain, disk: string): Promise<bigint> {
    const reply = await this.#look(procedures.domainGetBlockInfo, of(domain).string(disk).uint(0))
    reply.hyper()
    return reply.hyper()
  }

  /** The first time, libvirt looks at every emulator that there is. */
  async capabilities(): Promise<string> {
    return (await this.#client.call(procedures.connectGetCapabilities, undefined, this.#timeouts.run)).string()
  }

  /** Starts what the XML says; a VM that has a definition keeps that. */
  async createXml(xml: string): Promise<void> {
    await this.#slow(procedures.domainCreateXml, new XdrWriter().string(xml).uint(0), this.#timeouts.run)
  }

  /** Starts it as it is defined, or from its managed save. */
  async create(domain: Domain): Promise<void> {
    await this.#slow(procedures.domainCreateWithFlags, of(domain).uint(0), this.#timeouts.save)
  }

  /** One that has ended meanwhile is as was wanted. */
  async destroy(domain: Domain): Promise<void> {
    try {
      await this.#slow(procedures.domainDestroyFlags, of(domain).uint(0), this.#timeouts.run)
    } catch (error) {
      if (!isRefusal(error, libvirtErrors.operationInvalid)) throw error
    }
  }

  async pressPowerButton(domain: Domain): Promise<void> {
    await this.#act(procedures.domainShutdownFlags, of(domain).uint(acpiPowerButton))
  }

  async suspend(domain: Domain): Promise<void> {
    await this.#act(procedures.domainSuspend, of(domain))
  }

  async resume(domain: Domain): Promise<void> {
    await this.#act(procedures.domainResume, of(domain))
  }

  /** As by its keyboard, when it put itself to sleep. */
  async wake(domain: Domain): Promise<void> {
    await this.#act(procedures.domainPmWakeup, of(domain).uint(0))
  }

  async reset(domain: Domain): Promise<void> {
    await this.#act(procedures.domainReset, of(domain).uint(0))
  }

  /** Only while it runs; its definition stays. */
  async updateDevice(domain: Domain, xml: string): Promise<void> {
    await this.#act(procedures.domainUpdateDeviceFlags, of(domain).string(xml).uint(affectLive))
  }

  async managedSave(domain: Domain): Promise<void> {
    await this.#slow(procedures.domainManagedSave, of(domain).uint(savedRunning), this.#timeouts.save)
  }

  async managedSaveXml(domain: Domain): Promise<string> {
    const args = of(domain).uint(xmlFlags.secure)
    return (await this.#look(procedures.domainManagedSaveGetXmlDesc, args)).string()
  }

  async defineManagedSaveXml(domain: Domain, xml: string): Promise<void> {
    const args = of(domain).maybeString(xml).uint(savedRunning)
    await this.#act(procedures.domainManagedSaveDefineXml, args)
  }

  async define(xml: string): Promise<Domain> {
    return readDomain(await this.#act(procedures.domainDefineXml, new XdrWriter().string(xml)))
  }

  /** Its files stay; 409 while a managed save of it exists. */
  async undefine(domain: Domain): Promise<void> {
    const { snapshots, keepNvram, checkpoints } = undefining
    await this.#act(procedures.domainUndefineFlags, of(domain).uint(snapshots | keepNvram | checkpoints))
  }

  /** With what libvirt keeps for it. */
  async undefineAll(domain: Domain): Promise<void> {
    const { managedSave, snapshots, nvram, checkpoints } = undefining
    await this.#act(procedures.domainUndefineFlags, of(domain).uint(managedSave | snapshots | nvram | checkpoints))
  }

  async rename(domain: Domain, name: string): Promise<void> {
    await this.#act(procedures.domainRename, of(domain).maybeString(name).uint(0))
  }

  async #found(procedure: number, args: XdrWriter): Promise<Domain | undefined> {
    try {
      return readDomain(await this.#look(procedure, args))
    } catch (error) {
      if (isRefusal(error, libvirtErrors.noDomain)) return undefined
      throw error
    }
  }

  #look(procedure: number, args: XdrWriter | undefined): Promise<XdrReader> {
    return this.#client.call(procedure, args, this.#timeouts.look)
  }

  #act(procedure: number, args: XdrWriter): Promise<XdrReader> {
    return this.#client.call(procedure, args, this.#timeouts.act)
  }

  async #slow(procedure: number, args: XdrWriter, ms: number): Promise<void> {
    if (this.#long >= maxLong) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#long++
    try {
      await this.#client.call(procedure, args, ms)
    } finally {
      // The next one has the place at once.
      const next = this.#waiting.shift()
      if (next === undefined) this.#long--
      else next()
    }
  }
}

const of = (domain: Domain): XdrWriter => writeDomain(new XdrWriter(), domain)
