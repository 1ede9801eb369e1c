import { ApiError, type ApiErrorOptions } from '../../lib/errors/api-error.ts'

/** The compute was not reached: the request has had no effect there. */
export class Unreachable extends ApiError {
  constructor(status: number, message: string, options?: ApiErrorOptions) {
    super(status, message, { code: 'compute-unreachable', ...options })
  }
}
