import { type FileHandle, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlacementStore } from '../../../src/gateway/members.ts'
import { isUuid } from '../../../src/schema/fields.ts'
import type { Log } from '../log/log.ts'
import { requireSpace, translated } from '../storage/disk.ts'
import { removeTemporaries, writeDurable } from '../storage/durable-file.ts'

/** A log that is mostly history is written anew when it has more lines than so. */
const fewLines = 1000

interface PlacementLogOptions {
  readonly data: string
  readonly minFreeMb: () => number
  readonly log: Log
}

/**
 * Which compute has which project, in `{data}/placements.log`: a line a change, `{project_id} {compute_id}` or `{project_id}`
 * alone for one that is gone. A change costs the same however many projects there are, and what is torn by a crash is a line
 * that nobody was told of.
 */
export class PlacementLog implements PlacementStore {
  readonly #options: PlacementLogOptions
  readonly #path: string
  readonly #map = new Map<string, string>()
  #file: FileHandle | undefined
  #lines = 0
  /** Whether the file may end with a part of a line. */
  #isTorn = false
  /** Lines that wait to be written together. */
  #pending: string[] = []
  #writing: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  private constructor(options: PlacementLogOptions) {
    this.#options = options
    this.#path = join(options.data, 'placements.log')
  }

  static async open(options: PlacementLogOptions): Promise<PlacementLog> {
    await removeTemporaries(options.data)
    const log = new PlacementLog(options)
    await log.#load()
    return log
  }

  async get(projectId: string): Promise<string | undefined> {
    return this.#map.get(projectId)
  }

  async put(projectId: string, computeId: string): Promise<void> {
    if (this.#map.get(projectId) === computeId) return this.#next ?? this.#writing
    await requireSpace(this.#options.data, this.#options.minFreeMb())
    await this.#change(projectId, computeId)
  }

  async remove(projectId: string): Promise<void> {
    if (this.#map.has(projectId)) await this.#change(projectId, undefined)
  }

  async close(): Promise<void> {
    await this.#next?.catch(() => {})
    await this.#writing.catch(() => {})
    await this.#file?.close()
    this.#file = undefined
  }

  async #load(): Promise<void> {
    const text = await readFile(this.#path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw error
    })
    const lines = text.split('\n')
    // Behind the last line end is nothing, or what a crash tore.
    this.#isTorn = lines.pop() !== ''
    let damaged = 0
    for (const line of lines) {
      const [project = '', compute] = line.split(' ')
      if (!isUuid(project)) damaged += 1
      else if (compute === undefined) this.#map.delete(project)
      else this.#map.set(project, compute)
    }
    this.#lines = lines.length
    const { log } = this.#options
    if (damaged > 0) log.warn({ path: this.#path, lines: damaged }, 'lines of the placements cannot be read')
    if (this.#isTorn || this.#isHistory) await this.#rewrite()
  }

  get #isHistory(): boolean {
    return this.#lines > fewLines + 2 * this.#map.size
  }

  /** Changes that come while one is written are written together. */
  async #change(projectId: string, computeId: string | undefined): Promise<void> {
    const before = this.#map.get(projectId)
    if (computeId === undefined) this.#map.delete(projectId)
    else this.#map.set(projectId, computeId)
    this.#pending.push(computeId === undefined ? projectId : `${projectId} ${computeId}`)
    this.#next ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#next = undefined
        this.#writing = this.#write()
        return this.#writing
      })
    try {
      await translated('The placement of the project was not saved', () => this.#next ?? this.#writing)
    } catch (error) {
      if (before === undefined) this.#map.delete(projectId)
      else this.#map.set(projectId, before)
      throw error
    }
  }

  async #write(): Promise<void> {
    const lines = this.#pending
    this.#pending = []
    if (this.#isTorn || this.#isHistory) return this.#rewrite()
    this.#file ??= await open(this.#path, 'a', 0o600)
    // Until all of it is there, what follows must not be added to a part of it.
    this.#isTorn = true
    await this.#file.appendFile(lines.map((line) => `${line}\n`).join(''))
    await this.#file.datasync()
    this.#isTorn = false
    this.#lines += lines.length
  }

  async #rewrite(): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
    const lines = [...this.#map].map(([project, compute]) => `${project} ${compute}\n`)
    await writeDurable(this.#path, lines.join(''))
    this.#isTorn = false
    this.#lines = lines.length
  }
}
