import { codeOfStatus, type ErrorCode } from './error-codes.ts'

export interface ApiErrorOptions extends ErrorOptions {
  /** Default: `codeOfStatus`. */
  readonly code?: ErrorCode
  readonly image?: string
  /** All that is wrong with a lab file. */
  readonly errors?: readonly object[]
  /** What a file that is not trusted would run or open. */
  readonly untrusted?: readonly object[]
  /** How much more is wrong with it. */
  readonly more_errors?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** An error with an answer for the client. Any other thrown error becomes a logged 500 without detail. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  /** For programs. An error of a newer compute may have a code that is unknown here. */
  readonly code: ErrorCode
  /** Members of the error body besides `message` and `status`: of a missing image, and of a wrong lab file. */
  readonly extra: {
    readonly image?: string
    readonly exception?: string
    readonly errors?: readonly object[]
    readonly more_errors?: number
    readonly untrusted?: readonly object[]
  }
  /** Headers of the answer, such as `Allow` or `WWW-Authenticate`. */
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, options: ApiErrorOptions = {}) {
    super(message, options)
    this.status = status
    this.code = options.code ?? codeOfStatus(status)
    this.extra = {
      ...(options.image !== undefined && { image: options.image, exception: 'ImageMissingError' }),
      ...(options.errors !== undefined && { errors: options.errors }),
      ...(options.untrusted !== undefined && { untrusted: options.untrusted }),
      ...(options.more_errors !== undefined && { more_errors: options.more_errors }),
    }
    this.headers = options.headers ?? {}
  }
}

export const badRequest = (message: string, options?: ApiErrorOptions) => new ApiError(400, message, options)
/** 400: the client stopped sending in the middle of a body. */
export const bodyBrokeOff = (cause: unknown) =>
  badRequest('The request body ended early; nothing was stored', { cause })
export const forbidden = (message: string, options?: ApiErrorOptions) => new ApiError(403, message, options)
export const notFound = (message: string, options?: ApiErrorOptions) => new ApiError(404, message, options)
export const conflict = (message: string, options?: ApiErrorOptions) => new ApiError(409, message, options)
/** `image` is its name: a client uploads the image and retries. */
export const missingImage = (message: string, image: string) =>
  new ApiError(409, message, { code: 'image-missing', image })
export const tooLarge = (message: string) => new ApiError(413, message)
export const tooMany = (message: string) => new ApiError(429, message)
/** An error that a later retry may cure; `seconds` goes into the header Retry-After. */
export const retryLater = (status: 429 | 503, message: string, seconds: number, cause?: unknown) =>
  new ApiError(status, message, { cause, headers: { 'Retry-After': String(seconds) } })
export const outOfSpace = (message: string, options?: ApiErrorOptions) => new ApiError(507, message, options)

/** For `catch` of a removal: ignores 404, as the thing is gone already, and throws every other error. */
export function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof ApiError) || error.status !== 404) throw error
}

/** Whether a request that has failed may have had an effect nevertheless: its answer was lost. */
export const mayHaveSucceeded = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status === 502 || error.status === 504
