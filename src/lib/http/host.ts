interface Host {
  readonly text: string
  readonly name: string
}

/** A cache of one entry: most requests have the same few hosts. */
let last: Host | undefined

/** The Host header, as it was sent and as a bare lower-case name. An absolute request line sets the URL (RFC 9112, 3.2.2). */
export function hostOf(request: Request): Host | undefined {
  const text = request.headers.get('host') ?? new URL(request.url).host
  if (text === last?.text) return last
  const name = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(text)?.[1]
  if (name === undefined) return undefined
  last = { text, name: name.toLowerCase() }
  return last
}
