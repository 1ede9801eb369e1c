import { type ApiError, conflict } from '../../lib/errors/api-error.ts'
import type { RequestStep } from '../request-context.ts'

/** The refusal of a request that the service has sent itself. */
export const ownCompute = (): ApiError =>
  conflict('This service is registered as one of its own computes; remove that entry')

/** 409 for a request that this service has sent itself, to a compute of its fleet. */
export const refuseOwnRequests =
  (isOwn: (request: Request) => boolean): RequestStep =>
  ({ request }, next) => {
    if (isOwn(request)) throw ownCompute()
    return next()
  }
