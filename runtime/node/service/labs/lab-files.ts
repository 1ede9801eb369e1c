import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { jsonBytes, mebibyte } from '../../../../src/labs/lab/lab-limits.ts'
import {
  isApart,
  type LabEntries,
  type LabStorage,
  type StoredHead,
  UnreadableLab,
} from '../../../../src/labs/lab/store.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { Slots } from '../../../../src/lib/async/slots.ts'
import { isUuid } from '../../../../src/model/schema/fields.ts'
import { makeDirectory, removeDurable, removeTemporaries, writeDurable } from '../../engine/storage/durable-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'
import { endOf, firstHead, type JournalContent, put, readHead, readJournal } from './lab-journal.ts'

/** A journal is rewritten when it is longer than twice its entries and this, bytes. */
const slackBytes = mebibyte
/** Bytes of a line of a rewritten journal, about. */
const lineBytes = 256 * 1024
/** Most open files. */
const maxOpen = 64
/** Journals that are read at the same time. */
const maxReads = 2
/** Heads that are read at the same time. */
const maxHeads = 8

/** The file of a document. The entries are not in memory. */
interface Journal {
  readonly id: string
  readonly path: string
  /** Its reads and writes. */
  readonly turns: SerialQueue
  /** Bytes of whole lines; undefined: the file was not looked at yet. */
  end: number | undefined
  /** Bytes of JSON of its entries, when that was measured last. */
  live: number
  file: FileHandle | undefined
  /** Whether the file may end within a line. */
  isTorn: boolean
  /** Why it cannot be read: then it is not written either. */
  fault: UnreadableLab | undefined
  pending: LabEntries[]
  next: Promise<void> | undefined
}

interface LabFilesOptions {
  /** Most memory that the entries of a document may take, bytes. */
  readonly maxBytes: () => number
}

/**
 * The documents of labs, `{data}/labs/{id}.jsonl`. Each edit appends one line: a JSON object of the changed entries, null for a removed
 * one. So the cost of an edit does not depend on the size of the lab. An incomplete last line is an edit that no client got an answer to.
 */
export class LabFiles implements LabStorage {
  readonly #records: ServiceRecords
  readonly #options: LabFilesOptions
  readonly #directory: string
  readonly #journals = new Map<string, Journal>()
  /** Journals with an open file, the one that was used last at the end. */
  readonly #open = new Set<Journal>()
  readonly #reads = new Slots(maxReads)

  private constructor(records: ServiceRecords, options: LabFilesOptions) {
    this.#records = records
    this.#options = options
    this.#directory = records.pathOf('labs')
  }

  static async open(records: ServiceRecords, options: LabFilesOptions): Promise<LabFiles> {
    const files = new LabFiles(records, options)
    await makeDirectory(files.#directory)
    await removeTemporaries(files.#directory)
    return files
  }

  async heads(): Promise<ReadonlyMap<string, StoredHead>> {
    const names = (await readdir(this.#directory)).filter((it) => it.endsWith('.jsonl'))
    const ids = names.map((name) => name.slice(0, -'.jsonl'.length)).filter(isUuid)
    const heads = await mapLimit(ids, async (id) => [id, await this.#headOf(id)] as const, maxHeads)
    return new Map(heads.flatMap(([id, found]) => (found === undefined ? [] : [[id, found] as const])))
  }

  /** Undefined for a document that is that of no lab. */
  async #headOf(id: string): Promise<StoredHead | undefined> {
    await using file = await opened(this.#path(id))
    if (file === undefined) return undefined
    try {
      const head = (await readHead(file)) ?? (await firstHead(file))
      if (head !== undefined) return { head }
      const entries = await this.load(id)
      return entries?.has('project') ? { head: entries.get('project') } : undefined
    } catch (error) {
      if (error instanceof UnreadableLab) return { head: await firstHead(file), fault: error.message }
      throw error
    }
  }

  async load(id: string): Promise<LabEntries | undefined> {
    if (isApart(id)) return (await this.#reads.run(() => this.#read(this.#path(id))))?.entries
    const known = this.#journals.get(id)
    if (known !== undefined) return known.turns.run(() => this.#load(known))
    // Most unknown ids are those of no lab: they are not kept.
    await using file = await opened(this.#path(id))
    if (file === undefined) return undefined
    const journal = this.#journal(id)
    return journal.turns.run(() => this.#load(journal))
  }

  async #load(journal: Journal): Promise<LabEntries | undefined> {
    try {
      const found = await this.#reads.run(() => this.#read(journal.path))
      journal.fault = undefined
      if (found?.live !== undefined) journal.live = found.live
      return found?.entries
    } catch (error) {
      if (!(error instanceof UnreadableLab)) throw error
      journal.fault = new UnreadableLab(`${error.message}. The file ${journal.path} was left as it is`)
      throw journal.fault
    }
  }

  async #read(path: string): Promise<JournalContent | undefined> {
    await using file = await opened(path)
    return file && (await readJournal(file, this.#options.maxBytes()))
  }

  async save(id: string, changes: LabEntries): Promise<void> {
    const file = `labs/${id}.jsonl`
    if (isApart(id)) {
      await this.#records.save({ file, what: 'The document was not saved' }, () =>
        writeDurable(this.#path(id), lineOf(changes)),
      )
      return
    }
    const journal = this.#journal(id)
    // Changes that come during a write are written together.
    journal.pending.push(changes)
    journal.next ??= journal.turns.run(async () => {
      const all = journal.pending
      journal.pending = []
      journal.next = undefined
      await this.#records.save({ file, what: 'The edit of the project was not saved' }, () => this.#write(journal, all))
    })
    await journal.next
  }

  async remove(id: string): Promise<void> {
    const journal = this.#journals.get(id)
    this.#journals.delete(id)
    await journal?.turns.run(() => this.#close(journal))
    await removeDurable(this.#path(id))
  }

  async close(): Promise<void> {
    for (const journal of this.#journals.values()) await journal.turns.run(() => this.#close(journal))
    this.#journals.clear()
  }

  #path(id: string): string {
    return join(this.#directory, `${id}.jsonl`)
  }

  #journal(id: string): Journal {
    const known = this.#journals.get(id)
    if (known !== undefined) return known
    const journal: Journal = {
      id,
      path: this.#path(id),
      turns: new SerialQueue(),
      end: undefined,
      live: 0,
      file: undefined,
      isTorn: false,
      fault: undefined,
      pending: [],
      next: undefined,
    }
    this.#journals.set(id, journal)
    return journal
  }

  /** All of the changes, or none. */
  async #write(journal: Journal, all: readonly LabEntries[]): Promise<void> {
    if (journal.fault !== undefined) throw journal.fault
    const text = all.map(lineOf).join('')
    const length = Buffer.byteLength(text)
    if (journal.end === undefined) {
      await using file = await opened(journal.path)
      journal.end = file === undefined ? 0 : await endOf(file)
      journal.isTorn = file !== undefined && (await file.stat()).size > journal.end
    }
    if (journal.end === 0) await this.#rewrite(journal, mergedOf(new Map(), all))
    else if (journal.end + length <= 2 * journal.live + slackBytes) await this.#append(journal, text, length)
    else {
      const found = await this.#read(journal.path).catch(unlessUnreadable)
      if (found === undefined) await this.#append(journal, text, length)
      else await this.#rewrite(journal, mergedOf(found.entries, all))
    }
  }

  async #rewrite(journal: Journal, entries: Map<string, unknown>): Promise<void> {
    await this.#close(journal)
    const text = linesOf(entries).join('')
    await writeDurable(journal.path, text)
    journal.end = Buffer.byteLength(text)
    journal.live = journal.end
    journal.isTorn = false
  }

  async #append(journal: Journal, text: string, length: number): Promise<void> {
    const file = await this.#fileOf(journal)
    if (journal.isTorn) await file.truncate(journal.end)
    // If the append fails, the next write must not continue an incomplete line.
    journal.isTorn = true
    await file.appendFile(text)
    await file.datasync()
    journal.end = (journal.end ?? 0) + length
    journal.isTorn = false
  }

  async #fileOf(journal: Journal): Promise<FileHandle> {
    journal.file ??= await open(journal.path, 'a', 0o600)
    // It is the one that was used last.
    this.#open.delete(journal)
    this.#open.add(journal)
    for (const other of this.#open) {
      if (this.#open.size <= maxOpen) break
      if (other.next !== undefined || other === journal) continue
      this.#open.delete(other)
      const closing = other.turns.run(async () => this.#open.has(other) || this.#close(other))
      closing.catch(ignore('what was written is durable already'))
    }
    return journal.file
  }

  async #close(journal: Journal): Promise<void> {
    const { file } = journal
    journal.file = undefined
    this.#open.delete(journal)
    await file?.close()
  }
}

/** Opens a file for reading; undefined when there is none. */
async function opened(path: string): Promise<FileHandle | undefined> {
  return open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}

/** For `catch`: a document that was readable when it was opened is continued. */
function unlessUnreadable(error: unknown): undefined {
  if (!(error instanceof UnreadableLab)) throw error
}

function mergedOf(entries: Map<string, unknown>, all: readonly LabEntries[]): Map<string, unknown> {
  for (const changes of all) for (const [key, value] of changes) put(entries, key, value)
  return entries
}

/** The lines of a rewritten journal. The head comes last, where `readHead` looks for it. */
function linesOf(entries: ReadonlyMap<string, unknown>): string[] {
  const lines: string[] = []
  let [line, length] = [new Map<string, unknown>(), 0]
  const end = () => {
    if (line.size > 0) lines.push(lineOf(line))
    ;[line, length] = [new Map(), 0]
  }
  for (const [key, value] of entries) {
    if (key === 'project') continue
    line.set(key, value)
    length += jsonBytes(value)
    if (length > lineBytes) end()
  }
  if (entries.has('project')) line.set('project', entries.get('project'))
  end()
  return lines
}

const lineOf = (entries: LabEntries): string =>
  `${JSON.stringify(Object.fromEntries([...entries].map(([key, value]) => [key, value ?? null])))}\n`
