import type { LibvirtClient } from './client.ts'
import { type Domain, domainUuid, readDomain, uuidContent, writeDomain } from './domain.ts'
import { isRefusal, libvirtErrors } from './libvirt-error.ts'
import { procedures } from './protocol.ts'
import { type XdrReader, XdrWriter } from './xdr.ts'

/** Timeouts of queries, of operations that wait for the lock of a VM (30 s in libvirt), of starts, and of saves, ms. */
export type DomainTimeouts = Readonly<typeof domainTimeouts>
export const domainTimeouts = { look: 15_000, act: 40_000, run: 180_000, save: 900_000 }

/** virDomainState. */
export const domainStates = { noState: 0, paused: 3, shutoff: 5, crashed: 6, pmSuspended: 7 } as const

/** virDomainUndefineFlagsValues. */
const undefineFlags = { managedSave: 1, snapshots: 2, nvram: 4, keepNvram: 8, checkpoints: 16 } as const
const xmlFlags = { secure: 1, inactive: 2 } as const
const listFlags = { persistent: 4 } as const
const acpiPowerButton = 1
/** VIR_DOMAIN_SAVE_RUNNING: the VM runs after a restore, even if it is paused now. */
const savedRunning = 2
const affectLive = 1

/** libvirt runs five calls of a client at once; two are kept for short calls. */
const maxLong = 3

/** The calls of libvirt about VMs. */
export class Domains {
  readonly #client: LibvirtClient
  readonly #timeouts: DomainTimeouts
  #long = 0
  readonly #waiting: (() => void)[] = []

  constructor(client: LibvirtClient, timeouts: DomainTimeouts) {
    this.#client = client
    this.#timeouts = timeouts
  }

  /** All VMs with a definition. */
  async list(): Promise<Domain[]> {
    const args = new XdrWriter().int(1).uint(listFlags.persistent)
    return (await this.#query(procedures.connectListAllDomains, args)).array(readDomain)
  }

  byName(name: string): Promise<Domain | undefined> {
    return this.#found(procedures.domainLookupByName, new XdrWriter().string(name))
  }

  async byUuid(uuid: string): Promise<Domain | undefined> {
    if (!domainUuid.test(uuid)) return undefined
    return this.#found(procedures.domainLookupByUuid, new XdrWriter().fixed(uuidContent(uuid)))
  }

  /** The definition, with secrets, so that it can be defined again. */
  async definition(domain: Domain): Promise<string> {
    const args = of(domain).uint(xmlFlags.inactive | xmlFlags.secure)
    return (await this.#query(procedures.domainGetXmlDesc, args)).string()
  }

  /** The XML of the running VM. */
  async live(domain: Domain): Promise<string> {
    return (await this.#query(procedures.domainGetXmlDesc, of(domain).uint(xmlFlags.secure))).string()
  }

  /** One of `domainStates`. */
  async state(domain: Domain): Promise<number> {
    return (await this.#query(procedures.domainGetState, of(domain).uint(0))).int()
  }

  async hasManagedSave(domain: Domain): Promise<boolean> {
    return (await this.#query(procedures.domainHasManagedSaveImage, of(domain).uint(0))).int() !== 0
  }

  /** The size of a disk such as `vda`, bytes. */
  async capacity(domain: Domain, disk: string): Promise<bigint> {
    const reply = await this.#query(procedures.domainGetBlockInfo, of(domain).string(disk).uint(0))
    reply.hyper()
    return reply.hyper()
  }

  /** The first call is slow, because libvirt probes all emulators. */
  async capabilities(): Promise<string> {
    return (await this.#client.call(procedures.connectGetCapabilities, undefined, this.#timeouts.run)).string()
  }

  /** Starts a VM with another XML than its definition, which stays. */
  createXml = (xml: string) =>
    this.#slow(procedures.domainCreateXml, new XdrWriter().string(xml).uint(0), this.#timeouts.run)

  /** Starts a VM as it is defined, or from its managed save. */
  create = (domain: Domain) => this.#slow(procedures.domainCreateWithFlags, of(domain).uint(0), this.#timeouts.save)

  /** Ends a VM at once; nothing for a VM that has ended. */
  async destroy(domain: Domain): Promise<void> {
    try {
      await this.#slow(procedures.domainDestroyFlags, of(domain).uint(0), this.#timeouts.run)
    } catch (error) {
      if (!isRefusal(error, libvirtErrors.operationInvalid)) throw error
    }
  }

  pressPowerButton = (domain: Domain) => this.#act(procedures.domainShutdownFlags, of(domain).uint(acpiPowerButton))
  suspend = (domain: Domain) => this.#act(procedures.domainSuspend, of(domain))
  resume = (domain: Domain) => this.#act(procedures.domainResume, of(domain))
  /** Wakes a guest that is asleep (ACPI S3). */
  wake = (domain: Domain) => this.#act(procedures.domainPmWakeup, of(domain).uint(0))
  reset = (domain: Domain) => this.#act(procedures.domainReset, of(domain).uint(0))

  /** Changes a device of the running VM only. */
  updateDevice = (domain: Domain, xml: string) =>
    this.#act(procedures.domainUpdateDeviceFlags, of(domain).string(xml).uint(affectLive))

  managedSave = (domain: Domain) =>
    this.#slow(procedures.domainManagedSave, of(domain).uint(savedRunning), this.#timeouts.save)

  async managedSaveXml(domain: Domain): Promise<string> {
    return (await this.#query(procedures.domainManagedSaveGetXmlDesc, of(domain).uint(xmlFlags.secure))).string()
  }

  defineManagedSaveXml = (domain: Domain, xml: string) =>
    this.#act(procedures.domainManagedSaveDefineXml, of(domain).maybeString(xml).uint(savedRunning))

  async define(xml: string): Promise<Domain> {
    return readDomain(await this.#act(procedures.domainDefineXml, new XdrWriter().string(xml)))
  }

  /** Undefines a VM and keeps its files; 409 while it has a managed save. */
  undefine = (domain: Domain) => this.#undefine(domain, undefineFlags.keepNvram)

  /** Undefines a VM with its managed save and UEFI variables. */
  undefineAll = (domain: Domain) => this.#undefine(domain, undefineFlags.managedSave | undefineFlags.nvram)

  #undefine(domain: Domain, flags: number): Promise<XdrReader> {
    const all = undefineFlags.snapshots | undefineFlags.checkpoints | flags
    return this.#act(procedures.domainUndefineFlags, of(domain).uint(all))
  }

  rename = (domain: Domain, name: string) => this.#act(procedures.domainRename, of(domain).maybeString(name).uint(0))

  async #found(procedure: number, args: XdrWriter): Promise<Domain | undefined> {
    try {
      return readDomain(await this.#query(procedure, args))
    } catch (error) {
      if (isRefusal(error, libvirtErrors.noDomain)) return undefined
      throw error
    }
  }

  #query = (procedure: number, args: XdrWriter) => this.#client.call(procedure, args, this.#timeouts.look)
  #act = (procedure: number, args: XdrWriter) => this.#client.call(procedure, args, this.#timeouts.act)

  async #slow(procedure: number, args: XdrWriter, ms: number): Promise<void> {
    if (this.#long >= maxLong) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#long++
    try {
      await this.#client.call(procedure, args, ms)
    } finally {
      // The place passes to the next waiter.
      const next = this.#waiting.shift()
      if (next === undefined) this.#long--
      else next()
    }
  }
}

const of = (domain: Domain): XdrWriter => writeDomain(new XdrWriter(), domain)
