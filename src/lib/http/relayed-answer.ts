/** An answer whose body is made already. Its headers are written as HTTP writes them, such as `Content-Type`. */
export interface RelayedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly content: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null
}

/** Its Response; a runtime may have a faster one. */
export const responseOf = ({ status, headers, content }: RelayedAnswer): Response =>
  new Response(content, { status, headers })
