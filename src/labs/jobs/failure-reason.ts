import { ApiError } from '../../lib/errors/api-error.ts'

/** Why a part of a job failed, for people. A defect is in the log, and is not shown. */
export const reasonOf = (error: unknown): string =>
  error instanceof ApiError ? error.message : 'Internal error of the service; see its log'
