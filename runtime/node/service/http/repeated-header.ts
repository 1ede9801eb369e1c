/**
 * Headers that decide who asks, from where, and how the body is read. None is a list, so a request has each once (RFC 9110, 5.3;
 * RFC 9112, 3.2). Node drops a second one or joins them, where a proxy before it may have judged the other one.
 */
const single = ['Host', 'Authorization', 'Origin', 'Content-Type', 'Sec-Fetch-Site']

/** By length: each has another one, so most headers of a request are not looked at further. */
const byLength = new Map(single.map((name) => [name.length, { name, lower: name.toLowerCase() }]))

/** The first of these headers that comes a second time in `rawHeaders` (name, value, name, value ...). */
export function repeatedHeader(rawHeaders: readonly string[]): string | undefined {
  const seen: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at] as string
    const known = byLength.get(raw.length)
    if (known === undefined || (raw !== known.name && raw.toLowerCase() !== known.lower)) continue
    if (seen.includes(known.name)) return known.name
    seen.push(known.name)
  }
  return undefined
}
