/** Of a `Request` that has no body. */
export interface BodilessRequest {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  /** Makes its signal. */
  readonly signal: () => AbortSignal
}

/**
 * A request without a body. Most are answered by their method, path and headers, and on Node a `Request` with a signal takes longer than the
 * answer: one is made, and has all the rest, when anything else is asked for.
 */
class LazyRequest {
  readonly #parts: BodilessRequest
  #whole: Request | undefined

  constructor(parts: BodilessRequest) {
    this.#parts = parts
  }

  static wholeOf(request: LazyRequest): Request {
    const { url, method, headers, signal } = request.#parts
    request.#whole ??= new Request(url, { method, headers, signal: signal() })
    return request.#whole
  }

  get url(): string {
    return this.#parts.url
  }

  get method(): string {
    return this.#parts.method
  }

  get headers(): Headers {
    return this.#parts.headers
  }

  get signal(): AbortSignal {
    return this.#parts.signal()
  }

  get body(): null {
    return null
  }
}

// Whatever else a Request of this runtime has is that of the whole one.
for (const [name, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(Request.prototype))) {
  if (Object.hasOwn(LazyRequest.prototype, name)) continue
  const member: PropertyDescriptor & ThisType<LazyRequest> =
    get === undefined
      ? {
          value(...args: unknown[]) {
            return value.apply(LazyRequest.wholeOf(this), args)
          },
        }
      : {
          get() {
            return get.call(LazyRequest.wholeOf(this))
          },
        }
  Object.defineProperty(LazyRequest.prototype, name, member)
}
Object.setPrototypeOf(LazyRequest.prototype, Request.prototype)

export const bodilessRequest = (parts: BodilessRequest): Request => new LazyRequest(parts) as unknown as Request
