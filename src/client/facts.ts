import type { Connection } from './connection.ts'
import type { ComputeAnswer } from './transport.ts'

/** What the head of an answer says of the bytes that follow. */
export interface BodyFacts {
  /** Bytes of the body. */
  readonly size: number
  /** Milliseconds since 1970. */
  readonly modified: number
}

/** 502 for a head without them. */
export function factsOf(connection: Connection, response: ComputeAnswer): BodyFacts {
  const size = response.headers.get('content-length') ?? ''
  const modified = Date.parse(response.headers.get('last-modified') ?? '')
  if (!/^\d{1,15}$/.test(size)) throw connection.wrong('a file without its size in Content-Length')
  if (Number.isNaN(modified)) throw connection.wrong('a file without the time of Last-Modified')
  return { size: Number(size), modified }
}
