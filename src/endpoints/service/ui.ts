import { Type } from '@sinclair/typebox'
import { sendAsset } from '../../server/http/assets.ts'
import { type Endpoint, endpoint } from '../../server/http/endpoint.ts'

/**
 * The page loads scripts, and asks for data, of this service only. Styles may be inline: the terminal writes style elements for its
 * colours.
 */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const self = { owner: 'self', tag: 'reference', scope: 'shared', public: true } as const

/** A script, a style sheet or the licences of the page. Its name has the digest of its content, so that it never changes. */
const file = Type.String({
  pattern: '^[a-z-]+-[A-Z0-9]{8}\\.(js|css|txt)$',
  expects: 'the name of a file of the page',
  description: 'Name of the file',
})

/** The page for people: its files hold no data, so that they need no credentials. */
export const uiEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: '/',
    ...self,
    page: true,
    summary: 'The web page',
    replies: { 200: { description: 'The page', media: 'text/html' } },
    handle: ({ request }, { assets }) =>
      sendAsset(assets, 'index.html', request, { 'Cache-Control': 'no-cache', 'Content-Security-Policy': policy }),
  }),
  endpoint({
    method: 'GET',
    path: '/app/{file}',
    ...self,
    summary: 'A script, a style sheet or the licences of the page',
    params: Type.Object({ file }),
    replies: { 200: { description: 'The file', media: 'text/javascript' } },
    errors: { 404: 'No such file: the page is of another version' },
    handle: ({ params, request }, { assets }) =>
      sendAsset(assets, params.file, request, { 'Cache-Control': 'max-age=31536000, immutable' }),
  }),
]
