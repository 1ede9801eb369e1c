import { Unreachable } from '../../compute/remote/unreachable.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { Member } from './members.ts'

// Errors of a gateway about its computes.

/** For clients: a compute may be connected again by then. */
export const retryAfter = { 'Retry-After': '5' }

export const noCompute = (): ApiError =>
  new ApiError(503, 'No compute is connected: register one, or see the last_error of the registered ones', {
    code: 'compute-unreachable',
    headers: retryAfter,
  })

export const unreachable = ({ name }: Member): ApiError =>
  new ApiError(503, `The compute ${name} is not connected`, { code: 'compute-unreachable', headers: retryAfter })

/** An error of a compute as an error of the gateway: 503 for a compute that was not reached. */
export function withComputeContext(error: unknown, { name }: Pick<Member, 'name'>): unknown {
  if (!(error instanceof Unreachable)) return error
  const [, reason = error.message] =
    /^The compute .+? (?:is not connected|cannot be (?:used|reached)): (.+)$/s.exec(error.message) ?? []
  return new Unreachable(503, `The compute ${name} is not connected: ${reason}`, {
    cause: error,
    headers: { ...retryAfter, ...error.headers },
  })
}

/** An error of a compute with its name in the message, which the error of one that was not reached has already. */
export function atCompute(error: unknown, member: Member): unknown {
  if (!(error instanceof ApiError) || error instanceof Unreachable) return error
  return new ApiError(error.status, `Compute ${member.name}: ${error.message}`, {
    code: error.code,
    cause: error,
    headers: error.headers,
    ...(error.extra.image !== undefined && { image: error.extra.image }),
  })
}
