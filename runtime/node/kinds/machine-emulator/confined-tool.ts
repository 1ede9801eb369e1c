import { sep } from 'node:path'
import { give, letRead } from '../../sandbox/box.ts'
import type { Confinement } from '../../sandbox/sandbox.ts'

export interface ConfinedToolOptions {
  /** The program qemu-img. */
  readonly path: string
  readonly confinement: Confinement
  /** Of the node, with its disks. */
  readonly directory: string
  /** Directories of images. */
  readonly images: readonly string[]
}

/** The tool for disks in a cell: it sees the directory of the node, the images, and what else it is shown. */
export class ConfinedTool {
  readonly path: string
  readonly #options: ConfinedToolOptions
  readonly #seen = new Map<string, boolean>()

  constructor(options: ConfinedToolOptions) {
    this.path = options.path
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
    this.#seen.set(file, isWritable || this.#seen.get(file) === true)
  }

  /** The command that runs it with arguments, in which every file is an absolute path. */
  async wrap(args: readonly string[]): Promise<{ command: string; args: string[] }> {
    const { confinement, directory } = this.#options
    await give(confinement.user, directory)
    for (const arg of args) if (arg.startsWith('/') && !this.#seen.has(arg)) await this.see(arg)
    const cell = { cwd: '/', network: 'none' as const, readable: this.readable, writable: this.writable }
    return confinement.wrap(cell, this.path, args)
  }

  #only(isWritable: boolean): string[] {
    return [...this.#seen].filter(([, it]) => it === isWritable).map(([file]) => file)
  }
}

/** The tool as it is, or in a cell. */
export type ImageTool = string | ConfinedTool
