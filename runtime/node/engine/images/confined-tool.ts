import { sep } from 'node:path'
import type { ProgramEnd } from '../../os/programs/start.ts'
import { give, letRead } from '../../os/sandbox/box.ts'
import { directoriesOf } from '../../os/sandbox/cell.ts'
import type { Confinement } from '../../os/sandbox/sandbox.ts'
import { CellShell, type ShellLimits } from '../../os/sandbox/shell.ts'
import type { DirectTool } from './direct-tool.ts'

export interface ConfinedToolOptions {
  /** The program qemu-img. */
  readonly path: string
  readonly confinement: Confinement
  /** Of the node, with its disks. */
  readonly directory: string
  /** Directories of images. */
  readonly images: readonly string[]
  /** Ends its commands. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The tool for disks in a cell: it sees the directory of the node, the images, and the files that it was shown. All commands of a
 * start run in one cell; the owner disposes of the tool, and so of the cell.
 */
export class ConfinedTool implements Disposable {
  readonly #options: ConfinedToolOptions
  readonly #seen = new Map<string, boolean>()
  #shell: CellShell | undefined

  constructor(options: ConfinedToolOptions) {
    this.#options = options
  }

  /** Files outside the directory that were shown, those that may be written to apart. */
  get readable(): string[] {
    return [...this.#options.images, ...this.#only(false)]
  }

  get writable(): string[] {
    return [this.#options.directory, ...this.#only(true)]
  }

  /** Shows it a file; of what a client may have chosen only after it was checked. */
  async see(file: string, isWritable = false): Promise<void> {
    const { confinement, directory, images } = this.#options
    if (file.startsWith(directory + sep)) return
    await letRead(confinement.user, file, images, isWritable)
    const before = this.#seen.get(file)
    if (before === true || before === isWritable) return
    this.#seen.set(file, isWritable)
    this.renew()
  }

  /** Runs it with arguments, in which every file is an absolute path. Never rejects for how it ended. */
  async run(args: readonly string[], limits: ShellLimits): Promise<ProgramEnd> {
    const { path, confinement, directory, signal } = this.#options
    await give(confinement.user, directory)
    for (const arg of args) if (arg.startsWith('/') && !this.#seen.has(arg)) await this.see(arg)
    if (this.#shell?.isOpen !== true) {
      const readable = [...this.readable, ...directoriesOf(path)]
      const cell = { cwd: '/', network: 'none', sees: 'bare', readable, writable: this.writable } as const
      this.#shell = new CellShell(confinement, cell)
    }
    return this.#shell.run(path, args, { ...limits, signal })
  }

  /** Ends the cell: the next command runs in a new one, out of reach of an image that has taken the tool over. */
  renew(): void {
    this.#shell?.close()
    this.#shell = undefined
  }

  [Symbol.dispose](): void {
    this.renew()
  }

  #only(isWritable: boolean): string[] {
    return [...this.#seen].filter(([, it]) => it === isWritable).map(([file]) => file)
  }
}

/** The tool as it is (by its path, or with a signal), or in a cell. */
export type ImageTool = string | DirectTool | ConfinedTool
