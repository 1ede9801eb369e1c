import { Type } from '@sinclair/typebox'
import { sizeOfSvg } from '../../../labs/symbols.ts'
import { badRequest, notFound } from '../../../lib/errors/api-error.ts'
import { readBytes } from '../../../lib/http/body.ts'
import { kinds } from '../../../model/kinds/index.ts'
import { type KindDescriptor, symbolOfKind } from '../../../model/kinds/kind.ts'
import { builtInSymbols, symbolNamed } from '../../../model/lab/built-in-symbols.ts'
import { type Context, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { catalogOf } from './lab-request.ts'

const tag = 'v2 symbols'
const owner = 'self'
const list = '/v2/symbols'
const maxBytes = 256 * 1024
const params = Type.Object({
  symbol_id: Type.String({ minLength: 1, maxLength: 200, description: 'Id of the symbol, such as `router`' }),
})
const noSuchSymbol = 'There is no such symbol'
const descriptors: readonly KindDescriptor[] = kinds

const LabSymbol = Type.Object(
  { symbol_id: Type.String(), filename: Type.String(), builtin: Type.Boolean(), theme: Type.String() },
  { $id: 'LabSymbol', description: 'A picture of nodes on the map' },
)

export const labSymbolEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: list,
    owner,
    tag,
    scope: 'shared',
    summary: 'List the symbols',
    replies: { 200: { description: 'The symbols', schema: Type.Array(LabSymbol) } },
    handle(_, context) {
      const own = catalogOf(context).symbols.names()
      const shown = (symbol_id: string, builtin: boolean) => ({
        symbol_id,
        filename: `${symbol_id}.svg`,
        builtin,
        theme: builtin ? 'Patchbay' : 'Custom symbols',
      })
      return ok([...Object.keys(builtInSymbols).map((id) => shown(id, true)), ...own.map((id) => shown(id, false))])
    },
  }),
  endpoint({
    ...{ method: 'GET', path: '/v2/default_symbols', owner, tag, scope: 'shared' },
    summary: 'The symbol of each kind of node',
    replies: { 200: { description: 'By kind', schema: Type.Record(Type.String(), Type.String()) } },
    handle: () => ok(Object.fromEntries(descriptors.map((kind) => [kind.name, symbolOfKind(kind)]))),
  }),
  endpoint({
    ...{ method: 'GET', path: `${list}/{symbol_id}/raw`, owner, tag, params, scope: 'shared' },
    summary: 'The picture of a symbol',
    replies: { 200: { description: 'SVG', media: 'image/svg+xml' } },
    errors: { 404: noSuchSymbol },
    handle: ({ params }, context) =>
      new Response(symbolOf(params.symbol_id, context), {
        headers: {
          'Content-Type': 'image/svg+xml',
          // An SVG may contain a script, which must not run when a browser opens the SVG as a document.
          'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
          'X-Content-Type-Options': 'nosniff',
          'Cache-Control': 'max-age=3600',
        },
      }),
  }),
  endpoint({
    ...{ method: 'GET', path: `${list}/{symbol_id}/dimensions`, owner, tag, params, scope: 'shared' },
    summary: 'Width and height of a symbol',
    replies: {
      200: { description: 'In pixels', schema: Type.Object({ width: Type.Integer(), height: Type.Integer() }) },
    },
    errors: { 404: noSuchSymbol },
    handle: ({ params }, context) => ok(sizeOfSvg(symbolOf(params.symbol_id, context)) ?? { width: 60, height: 60 }),
  }),
  endpoint({
    ...{ method: 'POST', path: `${list}/{symbol_id}/raw`, owner, tag, params },
    summary: 'Upload a symbol as SVG, of at most 256 KiB',
    bodyKind: 'raw',
    replies: { 204: { description: 'Stored' } },
    errors: { 413: 'The body is larger than 256 KiB', 507: 'The disk is nearly full' },
    async handle({ params, request }, context) {
      const id = params.symbol_id.replace(/\.svg$/i, '')
      if (!/^[\w. -]{1,100}$/.test(id) || id.startsWith('.'))
        throw badRequest('symbol_id: expected letters, digits, spaces, ".", "_" and "-"')
      if (Object.hasOwn(builtInSymbols, id)) throw badRequest(`symbol_id: ${id} is built in; choose another name`)
      const text = new TextDecoder().decode(await readBytes(request, maxBytes))
      if (!/<svg[\s>]/i.test(text)) throw badRequest('body: expected an SVG image')
      await catalogOf(context).symbols.save(id, text)
      return noContent
    },
  }),
]

function symbolOf(word: string, context: Context): string {
  const found = catalogOf(context).symbols.get(word.replace(/\.svg$/i, '')) ?? symbolNamed(word)
  if (found === undefined) throw notFound(`symbol_id: there is no symbol ${word}; GET ${list} lists them`)
  return found
}
