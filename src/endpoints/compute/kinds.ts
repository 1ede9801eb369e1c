import { Type } from '@sinclair/typebox'
import { kinds } from '../../model/kinds/index.ts'
import { type KindDescriptor, symbolOfKind } from '../../model/kinds/kind.ts'
import { LabKind } from '../../model/lab/kind.ts'
import { mapFields } from '../../model/lab/node.ts'
import { consoleSizePath } from '../../model/schema/console-size.ts'
import { type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'

const list: readonly KindDescriptor[] = kinds
/** The settings that a node of a lab has outside of `properties`. */
const ofNode = new Set(['name', 'console', 'console_type', ...Object.keys(mapFields)])

export const kindEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'GET', path: '/v2/kinds', owner: 'self', tag: 'v2 nodes', scope: 'shared' },
    summary: 'List the kinds of node, with the forms of their settings',
    replies: { 200: { description: 'The kinds', schema: Type.Array(LabKind) } },
    handle: () => ok(list.map(kindView)),
  }),
]

const kindView = (kind: KindDescriptor): LabKind => ({
  name: kind.name,
  noun: kind.noun,
  consoles: [...kind.consoles],
  has_terminal_size: Object.values(kind.actions ?? {}).some(({ labPath }) => labPath === consoleSizePath),
  configs: Object.keys(kind.configs ?? {}),
  ...{
    title: kind.title,
    symbol: symbolOfKind(kind),
    first_settings: [...(kind.firstSettings ?? [])],
    image_setting: kind.image?.field ?? null,
  },
  is_always_on: kind.isAlwaysOn === true,
  can_be_suspended: kind.canBeSuspended,
  live_settings: [...(kind.liveFields ?? [])],
  has_images: kind.image !== undefined,
  console_types: choicesOf(kind.update.properties.console_type),
  form_parts: Object.entries(kind.formParts ?? {}).map(([title, settings]) => {
    const rows = kind.formRows?.[title]
    return {
      title,
      settings: [...settings],
      ...(rows !== undefined && {
        rows: { noun: rows.noun, titles: [...rows.titles], settings: rows.rows.map((row) => [...row]) },
      }),
    }
  }),
  settings: settingsOf(kind),
})

function settingsOf({ update, configs = {} }: KindDescriptor): Record<string, unknown> {
  const texts = new Set(Object.values(configs).map(({ field }) => field))
  const own = Object.entries(update.properties).filter(
    // Checksums of images are computed: those in a request are ignored.
    ([key]) => !ofNode.has(key) && !texts.has(key) && !key.endsWith('md5sum'),
  )
  return { type: 'object', properties: Object.fromEntries(own) }
}

/** The values that a schema of constant texts allows. */
function choicesOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { const: value, anyOf = [] } = schema as { const?: unknown; anyOf?: readonly unknown[] }
  return typeof value === 'string' ? [value] : anyOf.flatMap(choicesOf)
}
