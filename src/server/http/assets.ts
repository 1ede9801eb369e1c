import { toHex } from '../../lib/crypto/secret.ts'
import { notFound } from '../../lib/errors/api-error.ts'

/** A file of the service for browsers. */
export interface Asset {
  readonly body: string | Uint8Array<ArrayBuffer>
  /** Its media type. */
  readonly type: string
  /** Entity tag, quoted; it changes with the body. */
  readonly etag: string
  /** Gives the body compressed (RFC 1952). Absent: the runtime does not compress, or leaves it to a proxy. */
  readonly gzip?: () => Promise<Uint8Array<ArrayBuffer>>
}

/** Reads a file for browsers; undefined: no such file. */
export type Assets = (name: string) => Promise<Asset | undefined>

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  txt: 'text/plain; charset=utf-8',
  ttf: 'font/ttf',
  woff: 'font/woff',
  woff2: 'font/woff2',
}

/** The asset with this body: its type follows from the extension of the name, its tag from a digest. */
export async function assetOf(name: string, body: Asset['body']): Promise<Asset> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  const type = types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
  return { body, type, etag: `"${toHex(digest).slice(0, 32)}"` }
}

/** Reads assets as text; undefined: no such file. */
export const assetTextFrom =
  (assets: Assets) =>
  async (name: string): Promise<string | undefined> => {
    const body = (await assets(name))?.body
    return body instanceof Uint8Array ? new TextDecoder().decode(body) : body
  }

/** Headers of every page and script of the service. */
export const pageHeaders = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' }

/** Whether a client takes gzip (RFC 9110, 12.5.3). */
const takesGzip = (request: Request): boolean =>
  (request.headers.get('accept-encoding') ?? '')
    .split(',')
    .some((coding) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(coding))

/** Answers with an asset, or 304 when the client has it (RFC 9110, 13.1.2); 404 without such an asset. */
export async function sendAsset(
  assets: Assets,
  name: string,
  request: Request,
  more: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const asset = await assets(name)
  if (asset === undefined) throw notFound(`No such file: ${name}`)
  const { body, type, gzip } = asset
  const compress = gzip !== undefined && takesGzip(request) ? gzip : undefined
  // Another representation has another strong tag (RFC 9110, 8.8.3.3).
  const etag = compress === undefined ? asset.etag : asset.etag.replace(/"$/, '-gzip"')
  const headers = {
    ...pageHeaders,
    ...(gzip !== undefined && { Vary: 'Accept-Encoding' }),
    ETag: etag,
    'Cache-Control': 'max-age=86400',
    ...more,
  }
  const known = request.headers
    .get('if-none-match')
    ?.split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
  if (known?.includes(etag) || known?.includes('*')) return new Response(null, { status: 304, headers })
  if (compress === undefined) return new Response(body, { headers: { ...headers, 'Content-Type': type } })
  const coded = { ...headers, 'Content-Type': type, 'Content-Encoding': 'gzip' }
  return new Response(await compress(), { headers: coded })
}
