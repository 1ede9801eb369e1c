import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { SerialQueue } from '../../../src/async/serial-queue.ts'
import { isApart, type LabEntries, type LabStore, storedValue } from '../../../src/controller/store.ts'
import { makeDirectory, readDurable, removeDurable, removeTemporaries, writeDurable } from '../storage/durable-file.ts'
import type { ServiceRecords } from '../storage/service-records.ts'

/** A journal with more lines is rewritten as one line. */
const maxLines = 500

/** One lab in memory: its entries, and the file behind them. */
interface Journal {
  readonly path: string
  readonly writes: SerialQueue
  entries: Map<string, unknown>
  lines: number
  file: FileHandle | undefined
  /** Whether the file may end within a line. */
  isTorn: boolean
  pending: LabEntries[]
  next: Promise<void> | undefined
}

/**
 * The documents of labs, `{data}/labs/{id}.jsonl`. Each edit appends one line: a JSON object of the changed entries, null for a removed
 * one. So the cost of an edit does not depend on the size of the lab. An incomplete last line is an edit that no client got an answer to.
 */
export class LabFiles implements LabStore {
  readonly #records: ServiceRecords
  readonly #directory: string
  readonly #journals = new Map<string, Promise<Journal | undefined>>()

  private constructor(records: ServiceRecords) {
    this.#records = records
    this.#directory = records.pathOf('labs')
  }

  static async open(records: ServiceRecords): Promise<LabFiles> {
    const files = new LabFiles(records)
    await makeDirectory(files.#directory)
    await removeTemporaries(files.#directory)
    return files
  }

  async heads(): Promise<LabEntries> {
    const heads = new Map<string, unknown>()
    for (const name of (await readdir(this.#directory)).filter((it) => it.endsWith('.jsonl'))) {
      const id = name.slice(0, -'.jsonl'.length)
      if (isApart(id)) continue
      const entries = (await this.#read(id))?.entries
      if (entries?.has('project')) heads.set(id, entries.get('project'))
    }
    return heads
  }

  async load(id: string): Promise<LabEntries | undefined> {
    if (isApart(id)) return (await this.#read(id))?.entries
    const journal = await this.#journal(id, false)
    // A new document whose first save has failed.
    return journal?.lines === 0 ? undefined : journal?.entries
  }

  async save(id: string, changes: LabEntries): Promise<void> {
    if (isApart(id)) {
      const file = `labs/${id}.jsonl`
      await this.#records.save({ file, what: 'The document was not saved' }, () =>
        writeDurable(this.#path(id), lineOf(changes)),
      )
      return
    }
    const journal = (await this.#journal(id, true)) as Journal
    // Changes that come during a write are written together.
    journal.pending.push(changes)
    journal.next ??= journal.writes.run(async () => {
      const all = journal.pending
      journal.pending = []
      journal.next = undefined
      await this.#records.save({ file: `labs/${id}.jsonl`, what: 'The edit of the project was not saved' }, () =>
        this.#write(journal, all),
      )
    })
    await journal.next
  }

  async remove(id: string): Promise<void> {
    const journal = await this.#journal(id, false)
    this.#journals.delete(id)
    await journal?.writes.run(() => journal.file?.close())
    await removeDurable(this.#path(id))
  }

  async close(): Promise<void> {
    for (const opening of this.#journals.values()) {
      const journal = await opening
      await journal?.writes.run(() => journal.file?.close())
    }
    this.#journals.clear()
  }

  #path(id: string): string {
    return join(this.#directory, `${id}.jsonl`)
  }

  #journal(id: string, isNew: boolean): Promise<Journal | undefined> {
    const known = this.#journals.get(id)
    const opening = known ?? this.#read(id)
    const made = isNew ? opening.then((found) => found ?? newJournal(this.#path(id))) : opening
    if (known === undefined || isNew) this.#journals.set(id, made)
    return made
  }

  async #read(id: string): Promise<Journal | undefined> {
    const path = this.#path(id)
    const found = await readDurable(path, (text) => text)
    if (found === undefined) return undefined
    const journal = newJournal(path)
    const lines = found.value.split('\n')
    // A crash may leave an incomplete last line.
    journal.isTorn = lines.pop() !== ''
    journal.lines = lines.length
    for (const line of lines)
      for (const [key, value] of Object.entries(storedValue(line) as object)) put(journal.entries, key, value)
    return journal
  }

  /** All of the changes, or none. */
  async #write(journal: Journal, all: readonly LabEntries[]): Promise<void> {
    const apply = (entries: Map<string, unknown>) => {
      for (const changes of all) for (const [key, value] of changes) put(entries, key, value)
    }
    if (journal.isTorn || journal.lines === 0 || journal.lines > maxLines) {
      await journal.file?.close()
      journal.file = undefined
      const entries = new Map(journal.entries)
      apply(entries)
      await writeDurable(journal.path, lineOf(entries))
      journal.entries = entries
      journal.lines = 1
    } else {
      journal.file ??= await open(journal.path, 'a', 0o600)
      // If the append fails, the next write must not continue an incomplete line.
      journal.isTorn = true
      await journal.file.appendFile(all.map(lineOf).join(''))
      await journal.file.datasync()
      // In place: a copy of a lab with thousands of entries would take longer than the write.
      apply(journal.entries)
      journal.lines += all.length
    }
    journal.isTorn = false
  }
}

const newJournal = (path: string): Journal => ({
  ...{ path, writes: new SerialQueue(), entries: new Map(), lines: 0, file: undefined },
  ...{ isTorn: false, pending: [], next: undefined },
})

function put(entries: Map<string, unknown>, key: string, value: unknown): void {
  if (value === undefined || value === null) entries.delete(key)
  else entries.set(key, value)
}

const lineOf = (entries: LabEntries): string =>
  `${JSON.stringify(Object.fromEntries([...entries].map(([key, value]) => [key, value ?? null])))}\n`
