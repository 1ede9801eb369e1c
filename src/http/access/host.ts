interface Host {
  readonly text: string
  readonly name: string
}

/** The last one: requests come with the same few. */
let last: Host | undefined

/** The Host header, as it was sent and as a bare lower-case name. The URL is no help: an absolute request line sets it. */
export function hostOf(request: Request): Host | undefined {
  const text = request.headers.get('host') ?? new URL(request.url).host
  if (text === last?.text) return last
  const name = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(text)?.[1]
  if (name === undefined) return undefined
  last = { text, name: name.toLowerCase() }
  return last
}
