import { PatchbayError } from '../../../src/client/patchbay-error.ts'

/** Whether the service, or a program before it, does not answer: it may a moment later. */
export const isOutage = (error: unknown): boolean =>
  error instanceof PatchbayError && (error.status === 0 || error.status >= 500)
