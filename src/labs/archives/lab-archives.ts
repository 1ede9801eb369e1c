import { ignore } from '../../lib/async/ignore.ts'
import { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { longWaitsMs } from '../../lib/async/long-waits.ts'
import { relay } from '../../lib/async/relay.ts'
import { Slots } from '../../lib/async/slots.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { LabAccess } from '../access.ts'
import type { LabDocuments } from '../documents.ts'
import { retryText } from '../lab/archive-status.ts'
import { Changes, type ProjectRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { Lab } from '../lab/lab.ts'
import type { LabRegistry } from '../registry.ts'
import type { ArchiveLimits, ArchiveStore } from './archive-store.ts'

const defaultLimits: ArchiveLimits = { ms: 2 * 60 * 60_000, bytes: 64 * 2 ** 30 }
/** Most archives that are made at a time. */
const maxRunning = 4
/** Longest reason of a failed archive that is saved with its project, characters. */
const maxFailure = 500

/** Makes the content of the archive of a lab. */
export interface ArchiveSource {
  contentOf(lab: Lab, maxBytes: number): Promise<ReadableStream<Uint8Array>>
}

interface LabArchivesOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly source: ArchiveSource
  /** Absent: there are no archives. */
  readonly store: ArchiveStore | undefined
  readonly warn: (message: string) => void
}

/** Archives labs when they are closed, and tries again when that fails. A lab can be made from its archive when its compute is gone. */
export class LabArchives {
  readonly #registry: LabRegistry
  readonly #documents: LabDocuments
  readonly #access: LabAccess
  readonly #source: ArchiveSource
  readonly #store: ArchiveStore | undefined
  readonly #limits: ArchiveLimits
  readonly #warn: (message: string) => void
  /** Of each compute one after the other, so that a compute that sends nothing delays its own labs only. */
  readonly #perCompute = new KeyedMutex()
  readonly #slots = new Slots(maxRunning)

  constructor({ registry, documents, access, source, store, warn }: LabArchivesOptions) {
    this.#registry = registry
    this.#documents = documents
    this.#access = access
    this.#source = source
    this.#store = store
    this.#limits = store?.limits ?? defaultLimits
    this.#warn = warn
  }

  /** What the record of a lab that is closed says about its first archive. */
  firstAttempt(): Pick<ProjectRecord, 'archiveAttempts'> {
    return this.#store === undefined ? {} : { archiveAttempts: attemptAfter(0) }
  }

  /** When the next attempt to archive a lab is due. */
  nextAttemptAt({ is_open, archiveAttempts }: ProjectRecord): string | undefined {
    return this.#store === undefined || is_open ? undefined : archiveAttempts?.again_at
  }

  /** Begins to archive a lab that was closed. */
  archiveAfterClose(id: string): void {
    if (this.#store !== undefined) void this.archive(id).catch((error: Error) => this.recordFailure(id, error))
  }

  /** Archives a closed lab. `time`: when this attempt was due; absent for the first one, which the close makes. */
  archive(id: string, time?: string): Promise<void> {
    const make = () => this.#slots.run(() => this.#make(id, time))
    return this.#perCompute.runAll(this.#registry.get(id)?.computes ?? [], make)
  }

  /** Says why a closed lab was not archived, in the log and with the lab. */
  recordFailure(id: string, { message }: Error): void {
    const { is_open, archiveAttempts } = this.#registry.get(id) ?? {}
    if (archiveAttempts === undefined || is_open) return
    this.#warn(`The project ${id} was not archived (${retryText(archiveAttempts)}): ${message}`)
    const noting = this.#access.locked(id, async () => {
      const now = this.#registry.get(id)?.archiveAttempts
      // Another attempt may have begun meanwhile, also the first one after another close.
      if (now?.tries !== archiveAttempts.tries || now.again_at !== archiveAttempts.again_at) return
      const failure = message.slice(0, maxFailure)
      await this.#documents.saveServiceChange(await this.#access.find(id), (project) =>
        new Changes().project({ ...project, archiveAttempts: { ...archiveAttempts, failure } }),
      )
    })
    noting.catch(ignore('the log has it'))
  }

  async remove(id: string): Promise<void> {
    await this.#store?.remove(id)
  }

  /** Whether the compute of a lab is not connected, and the lab can be made elsewhere from its archive. */
  isComputeLost(lab: Lab): boolean {
    return this.hasArchive(lab) && lab.statusReason !== undefined
  }

  /** Whether a lab is on one compute, and there is an archive of it as it is. */
  hasArchive({ document: { project } }: Lab): boolean {
    return this.#store !== undefined && project.archivedRevision === project.revision && project.computes.length === 1
  }

  /** Unless the lab is opened meanwhile. The next attempt is planned before this one begins, as the process may end during it. */
  async #make(id: string, time: string | undefined): Promise<void> {
    const lab = await this.#access.locked(id, async () => {
      const head = this.#registry.get(id)
      if (head?.archiveAttempts === undefined || head.is_open || this.#documents.get(id) !== undefined) return undefined
      const found = await this.#access.find(id)
      if (time !== undefined) {
        if (head.archiveAttempts.again_at !== time) return undefined
        const { tries, failure } = head.archiveAttempts
        const archiveAttempts = { ...attemptAfter(tries), ...withoutNulls({ failure }) }
        await this.#documents.saveServiceChange(found, (project) =>
          new Changes().project({ ...project, archiveAttempts }),
        )
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
      const content = await this.#source.contentOf(lab, bytes)
      await store.write(id, relay(content, { signal: late.signal }))
    } finally {
      clearTimeout(timer)
    }
    await this.#access.locked(id, async () => {
      const now = this.#registry.has(id) ? await this.#access.find(id) : undefined
      if (now === undefined) await store.remove(id)
      else if (now.document.project.revision === revision)
        await this.#documents.saveServiceChange(now, ({ archiveAttempts: _, ...project }) =>
          new Changes().project({ ...project, archivedRevision: revision }),
        )
    })
  }
}

/** The record of one more attempt to archive a lab. After the last one the next close tries again. */
function attemptAfter(before: number): NonNullable<ProjectRecord['archiveAttempts']> {
  const wait = longWaitsMs[before]
  return { tries: before + 1, ...(wait !== undefined && { again_at: new Date(Date.now() + wait).toISOString() }) }
}
