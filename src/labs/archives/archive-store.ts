export interface ArchiveLimits {
  /** Most time for the archive of a project, ms. */
  readonly ms: number
  /** Most bytes of its files. */
  readonly bytes: number
}

/**
 * The archives that a service keeps of closed projects (`fleet.keep_archives`), apart from their computes: as users export them, each of the
 * last closing. A project whose compute is gone can be made from its archive on another one (`moveLab`).
 */
export interface ArchiveStore {
  /** Absent: the defaults. */
  readonly limits?: ArchiveLimits
  /** Stores the archive of a project in place of the one before. When the content fails, the one before stays. 507. */
  write(projectId: string, content: ReadableStream<Uint8Array>): Promise<void>
  /** Undefined: there is none. */
  read(projectId: string): Promise<ReadableStream<Uint8Array> | undefined>
  /** Does nothing when there is none. */
  remove(projectId: string): Promise<void>
}
