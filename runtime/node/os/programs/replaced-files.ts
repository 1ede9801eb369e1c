import { ApiError } from '../../../../src/lib/errors/api-error.ts'

/** 503 for a part of the program that is loaded at its first use, and is there no more: an upgrade or a build replaced the files. */
export const replacedFileError = (cause: unknown): ApiError | undefined =>
  (cause as NodeJS.ErrnoException | undefined)?.code === 'ERR_MODULE_NOT_FOUND'
    ? new ApiError(503, 'The files of the program were replaced: restart the service', { cause: cause as Error })
    : undefined
