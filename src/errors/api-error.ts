/** A failure the client may be told about. Anything else that is thrown becomes a logged 500 with no detail. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  /** Members the error body carries beside `message` and `status`; only a missing image has them: its name, and a word for it. */
  readonly extra: { readonly image?: string; readonly exception?: string }
  /** Headers of the answer, such as `Allow` or `WWW-Authenticate`. */
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    message: string,
    options: ErrorOptions & { image?: string; headers?: Record<string, string> } = {},
  ) {
    super(message, options)
    this.status = status
    this.extra = options.image === undefined ? {} : { image: options.image, exception: 'ImageMissingError' }
    this.headers = options.headers ?? {}
  }
}

export const badRequest = (message: string, options?: ErrorOptions) => new ApiError(400, message, options)
export const forbidden = (message: string, options?: ErrorOptions) => new ApiError(403, message, options)
export const notFound = (message: string, options?: ErrorOptions) => new ApiError(404, message, options)
export const conflict = (message: string, options?: ErrorOptions) => new ApiError(409, message, options)
/** `image` is the name that was asked for: a client uploads it and tries again. */
export const missingImage = (message: string, image: string) => new ApiError(409, message, { image })
export const tooLarge = (message: string) => new ApiError(413, message)
export const tooMany = (message: string) => new ApiError(429, message)
export const outOfSpace = (message: string, options?: ErrorOptions) => new ApiError(507, message, options)
