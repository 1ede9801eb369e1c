import type { ProjectRecord } from './document.ts'

// What clients see of the archive of a closed lab; `LabArchives` makes it.

/** Whether there is an archive of a project as it is. */
export const archivedView = ({ archivedRevision, revision }: ProjectRecord): { archived?: true } =>
  archivedRevision === revision ? { archived: true } : {}

/**
 * Why a closed project has no archive: its `status_reason` where nothing worse is to say. Undefined where none was to be made, or the attempt has
 * not ended.
 */
export function archiveFailure({ archiveAttempts }: ProjectRecord): string | undefined {
  if (archiveAttempts?.failure === undefined) return undefined
  return `It could not be archived (${retryText(archiveAttempts)}): ${archiveAttempts.failure}`
}

/** When a failed archive is tried again, in words. */
export const retryText = ({ again_at }: NonNullable<ProjectRecord['archiveAttempts']>): string =>
  again_at === undefined ? 'the next attempt is at its next close' : 'it will be tried again'
