import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { FileProbes } from '../../../engine/storage/file-probes.ts'
import { CommandLine, type CommandLineOptions } from './command-line.ts'
import { isMissing } from './failure.ts'
import {
  type AdapterNote,
  type Disk,
  type Installation,
  type ListedMachine,
  parseAdapterNotes,
  parseDisks,
  parseExtraData,
  parseInstallation,
  parseMachines,
} from './listings.ts'
import { parseVm, type VirtualBoxVm } from './machine.ts'

const minApi = [4, 3] as const
/** Marks of clones of nodes; the second is that of GNS3. */
export const cloneMark = 'Patchbay/Clone'
const cloneMarks = [cloneMark, 'GNS3/Clone']

/** The VMs of VirtualBox, read through its command line. */
export class Machines {
  readonly #line: CommandLine
  readonly #installations = new FileProbes<Installation>()

  constructor(options: CommandLineOptions) {
    this.#line = new CommandLine(options)
  }

  /** The installed version, cached until the program changes unless `isFresh`; 409 when there is none, or it is too old. */
  async installation(isFresh = false): Promise<Installation> {
    return this.#installations.get(this.#line.program(), () => this.#probe(), isFresh)
  }

  /** Runs VBoxManage; 409 for an unsupported version. */
  async run(...args: readonly string[]): Promise<string> {
    await this.installation()
    return this.#line.run(...args)
  }

  async list(which: 'vms' | 'runningvms' = 'vms'): Promise<ListedMachine[]> {
    return parseMachines(await this.run('list', which))
  }

  /** Undefined when the VM is gone, or its settings cannot be read. */
  async findReadable(uuid: string): Promise<VirtualBoxVm | undefined> {
    const machine = await this.#describe(uuid)
    return machine?.isAccessible === true ? machine : undefined
  }

  /** Undefined when the VM is gone; 409 when its settings cannot be read. */
  async find(uuid: string): Promise<VirtualBoxVm | undefined> {
    const machine = await this.#describe(uuid)
    if (machine?.isAccessible === false) throw conflict(`VirtualBox cannot read the settings of the VM ${uuid}`)
    return machine
  }

  /** 409 when the VM is gone. */
  async get(uuid: string): Promise<VirtualBoxVm> {
    const machine = await this.find(uuid)
    if (machine === undefined) throw conflict(`VirtualBox no longer has the VM ${uuid}`)
    return machine
  }

  async adapterNotes(uuid: string): Promise<Map<number, AdapterNote>> {
    return parseAdapterNotes(await this.run('showvminfo', uuid))
  }

  async modify(uuid: string, options: readonly string[]): Promise<void> {
    // modifyvm saves all options, or none when one is invalid.
    if (options.length > 0) await this.run('modifyvm', uuid, ...options)
  }

  /** Whether the VM is a clone of a node; true also when the VM is gone, so that lists leave it out. */
  async isClone(uuid: string): Promise<boolean> {
    try {
      const data = parseExtraData(await this.run('getextradata', uuid, 'enumerate'))
      return cloneMarks.some((mark) => data.get(mark) === 'yes')
    } catch (error) {
      if (isMissing(error)) return true
      throw error
    }
  }

  async disks(): Promise<Disk[]> {
    return parseDisks(await this.run('list', 'hdds'))
  }

  close(): Promise<void> {
    return this.#line.close()
  }

  async #describe(uuid: string): Promise<VirtualBoxVm | undefined> {
    try {
      return parseVm(await this.run('showvminfo', uuid, '--machinereadable'))
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  async #probe(): Promise<Installation> {
    const facts = parseInstallation(await this.#line.run('list', 'systemproperties'))
    if (facts.api === undefined) throw conflict('VirtualBox does not report its API version')
    const [major, minor] = facts.api
    if (major < minApi[0] || (major === minApi[0] && minor < minApi[1]))
      throw conflict(`VirtualBox ${major}.${minor} is too old: expected ${minApi.join('.')} or later`)
    return facts
  }
}
