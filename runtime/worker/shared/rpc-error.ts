import { ApiError } from '../../../src/lib/errors/api-error.ts'
import type { ErrorCode } from '../../../src/lib/errors/error-codes.ts'

/** An `ApiError` as programs of the gateway send it to each other. */
export interface EncodedError {
  readonly status: number
  readonly message: string
  /** Its code. */
  readonly word: ErrorCode
  readonly headers: Readonly<Record<string, string>>
}

export const encodeError = ({ status, message, code: word, headers }: ApiError): EncodedError => ({
  status,
  message,
  word,
  headers: { ...headers },
})

export const decodeError = ({ status, message, word: code, headers }: EncodedError): ApiError =>
  new ApiError(status, message, { code, headers })
