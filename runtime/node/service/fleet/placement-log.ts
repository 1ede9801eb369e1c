import { type FileHandle, open, readFile } from 'node:fs/promises'
import type { PlacementStore } from '../../../../src/fleet/members/members.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { isUuid } from '../../../../src/model/schema/fields.ts'
import { writeDurable } from '../../engine/storage/durable-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'

/** A log that is mostly history is rewritten when it has more lines than this. */
const fewLines = 1000
const record = { file: 'placements.log', what: 'The placement of the project was not saved' }

interface Change {
  readonly projectId: string
  /** Undefined: the project is gone. */
  readonly computeId: string | undefined
  readonly saved: Promise<void>
}

/**
 * Which compute has which project, in `{data}/placements.log`: one line for each change, `{project_id} {compute_id}` or `{project_id}`
 * alone for one that is gone. A change costs the same however many projects there are, and an incomplete line after a crash is a
 * change that no client got an answer to.
 */
export class PlacementLog implements PlacementStore {
  readonly #records: ServiceRecords
  readonly #path: string
  /** As the file has it. */
  readonly #saved = new Map<string, string>()
  /** The newest change of each project that is not saved yet. */
  readonly #ahead = new Map<string, Change>()
  readonly #writes = new SerialQueue()
  #file: FileHandle | undefined
  #lines = 0
  /** Whether the file may end with a part of a line. */
  #isTorn = false
  /** Changes that wait to be written together, and the write that will do it. */
  #pending: Change[] = []
  #next: Promise<void> | undefined

  private constructor(records: ServiceRecords) {
    this.#records = records
    this.#path = records.pathOf(record.file)
  }

  static async open(records: ServiceRecords): Promise<PlacementLog> {
    const log = new PlacementLog(records)
    await log.#load()
    return log
  }

  /** Ids of the projects that were placed on such computes. */
  idsOn(isWanted: (computeId: string) => boolean): string[] {
    const all = new Set([...this.#saved.keys(), ...this.#ahead.keys()])
    return [...all].filter((id) => {
      const computeId = this.#computeOf(id)
      return computeId !== undefined && isWanted(computeId)
    })
  }

  get(projectId: string): string | undefined {
    return this.#computeOf(projectId)
  }

  async put(projectId: string, computeId: string): Promise<void> {
    if (this.#computeOf(projectId) === computeId) return this.#ahead.get(projectId)?.saved
    await this.#records.requireSpace(record)
    await this.#change(projectId, computeId)
  }

  async remove(projectId: string): Promise<void> {
    if (this.#computeOf(projectId) !== undefined) await this.#change(projectId, undefined)
  }

  async close(): Promise<void> {
    await this.#writes.idle()
    await this.#file?.close()
    this.#file = undefined
  }

  #computeOf(projectId: string): string | undefined {
    const change = this.#ahead.get(projectId)
    return change === undefined ? this.#saved.get(projectId) : change.computeId
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
      else if (compute === undefined) this.#saved.delete(project)
      else this.#saved.set(project, compute)
    }
    this.#lines = lines.length
    const { log } = this.#records
    if (damaged > 0) log.warn({ path: this.#path, lines: damaged }, 'lines of the placements cannot be read')
    if (this.#isTorn || this.#isHistory) await this.#rewrite()
  }

  get #isHistory(): boolean {
    return this.#lines > fewLines + 2 * this.#saved.size
  }

  /** Changes that come while one is written are written together. */
  #change(projectId: string, computeId: string | undefined): Promise<void> {
    this.#next ??= this.#writes.run(() => {
      const changes = this.#pending
      this.#pending = []
      this.#next = undefined
      return this.#save(changes)
    })
    const change: Change = { projectId, computeId, saved: this.#next }
    this.#pending.push(change)
    this.#ahead.set(projectId, change)
    return change.saved
  }

  /** All of the changes, or none: what could not be saved is not remembered. */
  async #save(changes: readonly Change[]): Promise<void> {
    try {
      await this.#records.save(record, () => this.#write(changes))
      apply(this.#saved, changes)
    } finally {
      for (const change of changes)
        if (this.#ahead.get(change.projectId) === change) this.#ahead.delete(change.projectId)
    }
  }

  async #write(changes: readonly Change[]): Promise<void> {
    if (this.#isTorn || this.#isHistory) return this.#rewrite(changes)
    this.#file ??= await open(this.#path, 'a', 0o600)
    // Until all of it is there, what follows must not be added to a part of it.
    this.#isTorn = true
    const lines = changes.map(({ projectId, computeId }) =>
      computeId === undefined ? projectId : `${projectId} ${computeId}`,
    )
    await this.#file.appendFile(lines.map((line) => `${line}\n`).join(''))
    await this.#file.datasync()
    this.#isTorn = false
    this.#lines += lines.length
  }

  async #rewrite(changes: readonly Change[] = []): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
    const all = new Map(this.#saved)
    apply(all, changes)
    await writeDurable(this.#path, [...all].map(([project, compute]) => `${project} ${compute}\n`).join(''))
    this.#isTorn = false
    this.#lines = all.size
  }
}

function apply(placements: Map<string, string>, changes: readonly Change[]): void {
  for (const { projectId, computeId } of changes) {
    if (computeId === undefined) placements.delete(projectId)
    else placements.set(projectId, computeId)
  }
}
