import { ApiError } from '../../lib/errors/api-error.ts'

/** Why a part of a job failed, for people. A defect is in the log, and is not shown. */
export const reasonOf = (error: unknown): string =>
  error instanceof ApiError ? error.message : 'Internal error of the service; see its log'

/** A job was cancelled. */
export class Cancelled extends Error {}

/** The header with the id of the job that a request has started. */
export const jobHeader = 'X-Patchbay-Job'

/** The error for a request that waits for the job. */
export function failureOf(error: unknown, jobId: string): unknown {
  if (!(error instanceof ApiError)) return error
  const { status, message, code, headers, extra } = error
  const image = extra.image === undefined ? {} : { image: extra.image }
  return new ApiError(status, message, { code, cause: error, headers: { ...headers, [jobHeader]: jobId }, ...image })
}
