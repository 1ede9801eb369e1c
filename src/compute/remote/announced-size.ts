/** The bytes that `Content-Length` announces; undefined without it. Throws for what is not a number. */
export function announcedSize(headers: Pick<Headers, 'get'>): number | undefined {
  const text = headers.get('content-length')
  if (text === null) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new TypeError('its announced length is not a number')
}
