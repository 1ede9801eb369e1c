import { toHex } from '../auth/secret.ts'
import { notFound } from '../errors/api-error.ts'

/** A file of the program that browsers load. */
export interface Asset {
  readonly body: string | Uint8Array<ArrayBuffer>
  /** Its media type. */
  readonly type: string
  /** Entity tag, quoted: another one when the body is another. */
  readonly etag: string
}

/** Where a runtime has the files that browsers load; undefined: there is none of that name. */
export type Assets = (name: string) => Promise<Asset | undefined>

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
}

/** The asset with this body: the type by the ending of its name, the tag by a digest. */
export async function assetOf(name: string, body: Asset['body']): Promise<Asset> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  const type = types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
  return { body, type, etag: `"${toHex(digest).slice(0, 32)}"` }
}

/** What every page and script of ours is sent with. */
export const pageHeaders = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' }

/** Answers with an asset, or 304 when the client has it (RFC 9110, 13.1.2); 404 when there is none. */
export async function sendAsset(assets: Assets, name: string, request: Request): Promise<Response> {
  const asset = await assets(name)
  if (asset === undefined) throw notFound(`There is no file ${name}`)
  const { body, type, etag } = asset
  const headers = { ...pageHeaders, ETag: etag, 'Cache-Control': 'max-age=86400' }
  const known = request.headers
    .get('if-none-match')
    ?.split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
  if (known?.includes(etag) || known?.includes('*')) return new Response(null, { status: 304, headers })
  return new Response(body, { headers: { ...headers, 'Content-Type': type } })
}
