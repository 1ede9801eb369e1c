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
class AskedRequest {
  readonly #asked: BodilessRequest
  #whole: Request | undefined

  constructor(asked: BodilessRequest) {
    this.#asked = asked
  }

  static wholeOf(request: AskedRequest): Request {
    const { url, method, headers, signal } = request.#asked
    request.#whole ??= new Request(url, { method, headers, signal: signal() })
    return request.#whole
  }

  get url(): string {
    return this.#asked.url
  }

  get method(): string {
    return this.#asked.method
  }

  get headers(): Headers {
    return this.#asked.headers
  }

  get signal(): AbortSignal {
    return this.#asked.signal()
  }

  get body(): null {
    return null
  }
}

// Whatever else a Request of this runtime has is that of the whole one.
for (const [name, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(Request.prototype))) {
  if (Object.hasOwn(AskedRequest.prototype, name)) continue
  const member: PropertyDescriptor & ThisType<AskedRequest> =
    get === undefined
      ? {
          value(...args: unknown[]) {
            return value.apply(AskedRequest.wholeOf(this), args)
          },
        }
      : {
          get() {
            return get.call(AskedRequest.wholeOf(this))
          },
        }
  Object.defineProperty(AskedRequest.prototype, name, member)
}
Object.setPrototypeOf(AskedRequest.prototype, Request.prototype)

export const askedRequest = (asked: BodilessRequest): Request => new AskedRequest(asked) as unknown as Request
