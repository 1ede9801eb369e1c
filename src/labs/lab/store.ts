import { ApiError } from '../../lib/errors/api-error.ts'
import { wellFormed } from '../../lib/text/escape.ts'
import type { ProjectScope } from '../../model/access/project-scope.ts'

/** A document on disk: JSON values by key: `project` (settings), `node/{id}`, `link/{id}`, `drawing/{id}`, `snapshot/{id}`, `tasks`, `task-results`, `order/{table}`. */
export type LabEntries = ReadonlyMap<string, unknown>

/** The id of a document apart from labs, such as that of a snapshot: written as a whole, and not kept in memory. */
export const apart = (word: string): string => `apart-${word}`
export const isApart = (id: string): boolean => id.startsWith('apart-')

/**
 * The value of a JSON text that was stored or is in an archive. Earlier versions took half surrogate pairs, which have no UTF-8: each is
 * U+FFFD, as files and URLs have it already, and so that a compute takes the name.
 */
export const storedValue = (text: string): unknown =>
  /\\u[dD][89a-fA-F]/.test(text)
    ? JSON.parse(text, (_, value) => (typeof value === 'string' ? wellFormed(value) : value))
    : JSON.parse(text)

/** The names of all labs, where each lab has a process of its own (a Worker). */
export interface LabDirectory {
  /**
   * Saves the head of a lab in its stored form: its settings, as lists show them. `scope`: the projects of the client that makes it. 409 when another lab has
   * its name, 413 when there are too many labs.
   */
  put(id: string, head: unknown, scope?: ProjectScope): Promise<void>
  remove(id: string): Promise<void>
  /** The name, or if it is taken the next free one with a number. */
  freeName(name: string): Promise<string>
  /** Keeps who has an open lab in a page, for a few minutes: it has to be said again. */
  present(id: string, names: readonly string[]): Promise<void>
  /** Saves which lab a job belongs to; undefined removes the job. */
  job(jobId: string, projectId: string | undefined): Promise<void>
}

/** The head of a lab (entry `project`), or why its document cannot be read; the document stays as it is. */
export interface StoredHead {
  /** Undefined when it cannot be read either. */
  readonly head: unknown
  readonly fault?: string
}

/** 409: a document is damaged, too large, or of a newer version. It is not changed, and can be removed. */
export class UnreadableLab extends ApiError {
  constructor(reason: string) {
    super(409, reason)
  }
}

/** Stores labs: as files on Node, in Durable Objects in a Worker. */
export interface LabStorage {
  /** The head of every lab, by id. Documents are not read: their size does not count. */
  heads(): Promise<ReadonlyMap<string, StoredHead>>
  /** Undefined: there is no such lab. Rejects with UnreadableLab. */
  load(id: string): Promise<LabEntries | undefined>
  /**
   * Writes entries, all or none; undefined removes an entry. They are durable when the promise resolves; calls take effect in order.
   * 507 when the disk is nearly full.
   */
  save(id: string, changes: LabEntries): Promise<void>
  remove(id: string): Promise<void>
}
