import { labFileSchema, schemaPath } from '../../labfile/json-schema.ts'
import { pageHeaders, sendAsset } from '../../server/http/assets.ts'
import { type Endpoint, endpoint } from '../../server/http/endpoint.ts'

// The page loads files of this service only: it works on a machine without a network.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Patchbay reference</title>
<style>html { color-scheme: light dark } body { margin: 0 }</style>
<script src="/docs/page.js" defer></script>
<script src="/docs/rapidoc.js" defer></script>
</head>
<body>
<rapi-doc render-style="focused" load-fonts="false" show-header="false" allow-server-selection="false"
  schema-style="table" sort-endpoints-by="none" show-method-in-nav-bar="as-colored-text" nav-item-spacing="compact" on-nav-tag-click="expand-collapse"
  allow-advanced-search="true" schema-description-expanded="true" primary-color="#2f7d95" regular-font="system-ui, sans-serif" mono-font="ui-monospace, monospace"></rapi-doc>
</body>
</html>
`

/**
 * Follows the light or dark colour scheme of the desktop, and loads the document. It is declared as OpenAPI 3.0: RapiDoc needs 20 times
 * as long to resolve the references of a 3.1 document, and shows both in the same way.
 */
const script = `const page = () => document.querySelector('rapi-doc')
const dark = matchMedia('(prefers-color-scheme: dark)')
const show = () => {
  page().setAttribute('theme', dark.matches ? 'dark' : 'light')
  page().setAttribute('bg-color', dark.matches ? '#16191d' : '#ffffff')
  page().setAttribute('text-color', dark.matches ? '#d8dde3' : '#22272e')
  page().setAttribute('nav-bg-color', dark.matches ? '#101317' : '#f3f5f7')
  page().setAttribute('nav-text-color', dark.matches ? '#b4bcc6' : '#3b434d')
}
show()
dark.addEventListener('change', show)
// Aligns the licence with the lines around it.
const aligned = new CSSStyleSheet()
aligned.replaceSync('#api-info { margin-left: 0 }')
page().addEventListener('spec-loaded', () => page().shadowRoot.adoptedStyleSheets.push(aligned), { once: true })
const load = async () => {
  const [answer] = await Promise.all([fetch('/openapi.json'), customElements.whenDefined('rapi-doc')])
  const document = await answer.json()
  if (!answer.ok) throw new Error(document.message)
  await page().loadSpec({ ...document, openapi: '3.0.3' })
}
load().catch(({ message }) => document.body.replaceChildren('The reference cannot be loaded: ' + message))
`

const self = { owner: 'self', tag: 'reference', scope: 'shared' } as const

/** The reference of the interface: the OpenAPI document and a page. */
export const docsEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: '/openapi.json',
    ...self,
    summary: 'The OpenAPI 3.1 document of this service',
    replies: { 200: { description: 'The document', media: 'application/json' } },
    handle: (_, { json, openapi }) => json(openapi(), 200, {}),
  }),
  endpoint({
    method: 'GET',
    path: schemaPath,
    ...self,
    public: true,
    summary: 'The JSON Schema of lab files, for editors',
    replies: { 200: { description: 'The schema', media: 'application/schema+json' } },
    handle: () => Response.json(labFileSchema(), { headers: { 'Content-Type': 'application/schema+json' } }),
  }),
  endpoint({
    method: 'GET',
    path: '/docs',
    ...self,
    page: true,
    summary: 'The reference page',
    replies: { 200: { description: 'The page', media: 'text/html' } },
    handle: () =>
      new Response(page, {
        headers: { ...pageHeaders, 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy },
      }),
  }),
  endpoint({
    method: 'GET',
    path: '/docs/page.js',
    ...self,
    summary: 'The script that fills the reference page',
    replies: { 200: { description: 'The script', media: 'text/javascript' } },
    handle: () =>
      new Response(script, { headers: { ...pageHeaders, 'Content-Type': 'text/javascript; charset=utf-8' } }),
  }),
  endpoint({
    method: 'GET',
    path: '/docs/rapidoc.js',
    ...self,
    summary: 'The script of the reference page',
    replies: { 200: { description: 'The script', media: 'text/javascript' } },
    handle: ({ request }, { assets }) => sendAsset(assets, 'rapidoc-min.js', request),
  }),
]
