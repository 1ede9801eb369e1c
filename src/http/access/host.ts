/** The Host header, as it was sent and as a bare lower-case name. The URL is no help: an absolute request line sets it. */
export function hostOf(request: Request): { text: string; name: string } | undefined {
  const text = request.headers.get('host') ?? new URL(request.url).host
  const name = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(text)?.[1]
  return name === undefined ? undefined : { text, name: name.toLowerCase() }
}
