import { ignore } from '../lib/async/ignore.ts'
import { KeyedMutex } from '../lib/async/keyed-mutex.ts'
import { longWaitsMs } from '../lib/async/long-waits.ts'
import { relay } from '../lib/async/relay.ts'
import { Slots } from '../lib/async/slots.ts'
import { ApiError } from '../lib/errors/api-error.ts'
import type { LabAccess } from './access.ts'
import type { ArchiveLimits, ArchiveStore } from './archives/archive-store.ts'
import type { LabDocuments } from './documents.ts'
import { Changes, type ProjectRecord } from './lab/document.ts'
import { withoutNulls } from './lab/fields.ts'
import { type Lab, nextTryOf } from './lab/lab.ts'
import type { LabRegistry } from './registry.ts'

const defaultLimits: ArchiveLimits = { ms: 2 * 60 * 60_000, bytes: 64 * 2 ** 30 }
/** Most archives of closed labs that are made at a time. */
const maxArchiving = 4
/** Longest reason of a failed archive that is saved with its project, characters. */
const maxFailure = 500

/** Makes the content of an archive of a lab. */
export interface ArchiveSource {
  archiveOf(lab: Lab, maxBytes: number): Promise<ReadableStream<Uint8Array>>
}

interface ArchiverOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly source: ArchiveSource
  /** Absent: no archives are kept. */
  readonly store: ArchiveStore | undefined
  readonly warn: (message: string) => void
}

/** Keeps archives of closed labs apart from their computes: a lab can be made from its archive when its compute is gone. */
export class LabArchiver {
  readonly #registry: LabRegistry
  readonly #documents: LabDocuments
  readonly #access: LabAccess
  readonly #source: ArchiveSource
  readonly #store: ArchiveStore | undefined
  readonly #limits: ArchiveLimits
  readonly #warn: (message: string) => void
  /** Of each compute one after the other, so that a compute that sends nothing delays its own labs only. */
  readonly #archiving = new KeyedMutex()
  readonly #slots = new Slots(maxArchiving)

  constructor({ registry, documents, access, source, store, warn }: ArchiverOptions) {
    this.#registry = registry
    this.#documents = documents
    this.#access = access
    this.#source = source
    this.#store = store
    this.#limits = store?.limits ?? defaultLimits
    this.#warn = warn
  }

  /** What the record of a lab that is closed says about its first archive. */
  firstTry(): Pick<ProjectRecord, 'archiving'> {
    return this.#store === undefined ? {} : { archiving: archiveTry(0) }
  }

  /** When the next attempt to archive a lab is due. */
  againAt({ is_open, archiving }: ProjectRecord): string | undefined {
    return this.#store === undefined || is_open ? undefined : archiving?.again_at
  }

  /** Archives a lab that was closed. */
  closed(id: string): void {
    if (this.#store !== undefined) void this.keep(id).catch((error: Error) => this.failed(id, error))
  }

  /** Archives a closed lab. `time`: when this attempt was due; absent for the first one, which the close makes. */
  keep(id: string, time?: string): Promise<void> {
    const make = () => this.#slots.run(() => this.#make(id, time))
    return this.#archiving.runAll(this.#registry.get(id)?.computes ?? [], make)
  }

  /** Says why a closed lab was not archived, in the log and with the lab. */
  failed(id: string, { message }: Error): void {
    const { is_open, archiving } = this.#registry.get(id) ?? {}
    if (archiving === undefined || is_open) return
    this.#warn(`The project ${id} was not archived (${nextTryOf(archiving)}): ${message}`)
    const noting = this.#access.locked(id, async () => {
      const now = this.#registry.get(id)?.archiving
      // Another attempt may have begun meanwhile, also the first one after another close.
      if (now?.tries !== archiving.tries || now.again_at !== archiving.again_at) return
      const failure = message.slice(0, maxFailure)
      await this.#documents.saveUpkeep(await this.#access.find(id), (project) =>
        new Changes().project({ ...project, archiving: { ...archiving, failure } }),
      )
    })
    noting.catch(ignore('the log has it'))
  }

  async removed(id: string): Promise<void> {
    await this.#store?.remove(id)
  }

  /** Whether the compute of a lab is not connected, and the lab can be made elsewhere from its archive. */
  isComputeLost(lab: Lab): boolean {
    return this.isArchived(lab) && lab.statusReason !== undefined
  }

  /** Whether a lab is on one compute, and there is an archive of it as it is. */
  isArchived({ document: { project } }: Lab): boolean {
    return this.#store !== undefined && project.archived === project.revision && project.computes.length === 1
  }

  /** Unless the lab is opened meanwhile. The next attempt is planned before this one begins, as the process may end during it. */
  async #make(id: string, time: string | undefined): Promise<void> {
    const lab = await this.#access.locked(id, async () => {
      const head = this.#registry.get(id)
      if (head?.archiving === undefined || head.is_open || this.#documents.get(id) !== undefined) return undefined
      const found = await this.#access.find(id)
      if (time !== undefined) {
        if (head.archiving.again_at !== time) return undefined
        const { tries, failure } = head.archiving
        const archiving = { ...archiveTry(tries), ...withoutNulls({ failure }) }
        await this.#documents.saveUpkeep(found, (project) => new Changes().project({ ...project, archiving }))
      }
      return found
    })
    const store = this.#store
    if (lab === undefined || store === undefined) return
    const { revision } = lab.document.project
    const { ms, bytes } = this.#limits
    const late = new AbortController()
    const timer = setTimeout(
      () => late.abort(new ApiError(504, `Its computes did not send all files in ${ms / 60_000} minutes`)),
      ms,
    )
    try {
      const content = await this.#source.archiveOf(lab, bytes)
      await store.write(id, relay(content, { signal: late.signal }))
    } finally {
      clearTimeout(timer)
    }
    await this.#access.locked(id, async () => {
      const now = this.#registry.has(id) ? await this.#access.find(id) : undefined
      if (now === undefined) await store.remove(id)
      else if (now.document.project.revision === revision)
        await this.#documents.saveUpkeep(now, ({ archiving: _, ...project }) =>
          new Changes().project({ ...project, archived: revision }),
        )
    })
  }
}

/** The record of one more attempt to keep an archive. After the last one the next close tries again. */
function archiveTry(before: number): NonNullable<ProjectRecord['archiving']> {
  const wait = longWaitsMs[before]
  return { tries: before + 1, ...(wait !== undefined && { again_at: new Date(Date.now() + wait).toISOString() }) }
}
