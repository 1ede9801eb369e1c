import { ApiError, type ApiErrorOptions } from '../errors/api-error.ts'

/** The compute was not reached: nothing of the request was begun there. */
export class Unreachable extends ApiError {
  constructor(status: number, message: string, options?: ApiErrorOptions) {
    super(status, message, { word: 'compute-unreachable', ...options })
  }
}
