import { conflict } from '../../../../../src/errors/api-error.ts'
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
import { VirtualBoxVm } from './machine.ts'

const minApi = [4, 3] as const
/** Marks of clones that nodes have: ours, and that of the program before us. */
export const cloneMark = 'Patchbay/Clone'
const cloneMarks = [cloneMark, 'GNS3/Clone']

/** What VirtualBox knows, asked through its command line. */
export class Machines {
  readonly #line: CommandLine
  #installation: { readonly stamp: string; readonly facts: Promise<Installation> } | undefined

  constructor(options: CommandLineOptions) {
    this.#line = new CommandLine(options)
  }

  /** What this host has; 409 when that is nothing, or too old. Asked once for every version of the program, unless it is to be fresh. */
  async installation({ isFresh = false } = {}): Promise<Installation> {
    const { stamp } = this.#line.program()
    if (this.#installation?.stamp === stamp && !isFresh) return this.#installation.facts
    const facts = this.#ask()
    const known = { stamp, facts }
    this.#installation = known
    facts.catch(() => {
      if (this.#installation === known) this.#installation = undefined
    })
    return facts
  }

  /** A command of VBoxManage, refused when the installation is none that we know. */
  async run(...args: readonly string[]): Promise<string> {
    await this.installation()
    return await this.#line.run(...args)
  }

  async list(which: 'vms' | 'runningvms' = 'vms'): Promise<ListedMachine[]> {
    return parseMachines(await this.run('list', which))
  }

  /** Undefined when it is gone, or its settings cannot be read. */
  async findReadable(uuid: string): Promise<VirtualBoxVm | undefined> {
    const machine = await this.#describe(uuid)
    return machine?.isAccessible === true ? machine : undefined
  }

  /** Undefined when it is gone; 409 when its settings cannot be read. */
  async find(uuid: string): Promise<VirtualBoxVm | undefined> {
    const machine = await this.#describe(uuid)
    if (machine?.isAccessible === false) throw conflict(`VirtualBox cannot read the settings of the VM ${uuid}`)
    return machine
  }

  /** 409 when it is gone. */
  async get(uuid: string): Promise<VirtualBoxVm> {
    const machine = await this.find(uuid)
    if (machine === undefined) throw conflict(`VirtualBox has no VM ${uuid} any more`)
    return machine
  }

  async adapterNotes(uuid: string): Promise<Map<number, AdapterNote>> {
    return parseAdapterNotes(await this.run('showvminfo', uuid))
  }

  async modify(uuid: string, options: readonly string[]): Promise<void> {
    // All or nothing: settings are saved when every option has been understood.
    if (options.length > 0) await this.run('modifyvm', uuid, ...options)
  }

  /** Whether it is a clone that a node has; so is, for whoever wants to see others, one that is gone. */
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
      return new VirtualBoxVm(await this.run('showvminfo', uuid, '--machinereadable'))
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  async #ask(): Promise<Installation> {
    const facts = parseInstallation(await this.#line.run('list', 'systemproperties'))
    if (facts.api === undefined) throw conflict('VirtualBox: it does not say of what version its interface is')
    const [major, minor] = facts.api
    if (major < minApi[0] || (major === minApi[0] && minor < minApi[1])) {
      throw conflict(`VirtualBox ${major}.${minor} is too old: expected ${minApi.join('.')} or later`)
    }
    return facts
  }
}
