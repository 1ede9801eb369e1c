export interface BackupLimits {
  /** Most time for the backup of a project, ms. */
  readonly ms: number
  /** Most bytes of its files. */
  readonly bytes: number
}

/**
 * Backups of closed projects, apart from their computes: archives as users export them, each of the last closing. A project whose compute
 * is gone can be made from its backup on another one (`moveLab`). Clients and messages say archive.
 */
export interface BackupStore {
  /** Absent: the defaults. */
  readonly limits?: BackupLimits
  /** Stores the backup of a project in place of the one before. When the content fails, the one before stays. 507. */
  write(projectId: string, content: ReadableStream<Uint8Array>): Promise<void>
  /** Undefined: there is none. */
  read(projectId: string): Promise<ReadableStream<Uint8Array> | undefined>
  /** Does nothing when there is none. */
  remove(projectId: string): Promise<void>
}
