import { type PortRow, portsOf, type RangedPort, rowsOf } from './port-ranges.ts'

/** The parts of JSON Schema (2020-12) that the settings of kinds use. */
export interface Schema {
  /** Default: from the name. */
  readonly title?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly description?: string
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly expects?: string
  /** What a text names. */
  readonly holds?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly required?: readonly string[]
}

/** A field of a form. */
export type FormField = {
  readonly name: string
  readonly title: string
  readonly description: string | undefined
  readonly isRequired: boolean
  /** Whether it names an image. */
  readonly isImage?: boolean
  /** The value of a new node that does not say. */
  readonly default?: unknown
} & (
  | { readonly kind: 'text' | 'lines'; readonly maxLength: number | undefined; readonly pattern: string | undefined }
  | { readonly kind: 'number'; readonly minimum: number | undefined; readonly maximum: number | undefined }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly options: readonly (string | number)[] }
  /** Texts, one per line. */
  | { readonly kind: 'list' }
  /** Objects with the same members, one per row. */
  | { readonly kind: 'table'; readonly columns: readonly FormField[] }
  /** The ports of a switch: rows of those with equal settings. */
  | { readonly kind: 'ports'; readonly modes: readonly string[]; readonly ethertypes: readonly string[] }
  /** Other lists, and objects, are edited as JSON. */
  | { readonly kind: 'json' }
)

/** A text of this length or more is edited in several lines: a path is shorter. */
const longText = 5000

/** The fields of a form for an object, in the order of its members. */
export const fieldsOf = ({ properties = {}, required = [] }: Schema): FormField[] =>
  Object.entries(properties).map(([name, schema]) => fieldOf(name, schema, required.includes(name)))

function fieldOf(name: string, given: Schema, isRequired: boolean): FormField {
  const members = membersOf(given)
  const [first = {}] = members
  const description = given.description ?? first.description ?? given.anyOf?.find((it) => it.description)?.description
  const common = {
    name,
    title: given.title ?? titleOf(name),
    description,
    isRequired,
    default: defaultOf(given),
    ...(first.holds === 'image' && { isImage: true }),
  }
  const options = members.flatMap((it) => it.enum ?? [it.const])
  if (options.every((it) => typeof it === 'string' || typeof it === 'number'))
    return { ...common, kind: 'choice', options }
  // Such as a MAC address, or nothing: the service says what of a text is wrong.
  if (members.length > 1 && members.every((it) => it.type === 'string'))
    return { ...common, kind: 'text', maxLength: undefined, pattern: undefined }
  if (members.length > 1) return { ...common, kind: 'json' }
  const { type, maxLength, pattern, minimum, maximum } = first
  if (type === 'boolean') return { ...common, kind: 'flag' }
  if (type === 'integer' || type === 'number') return { ...common, kind: 'number', minimum, maximum }
  if (type === 'string') return { ...common, kind: (maxLength ?? 0) >= longText ? 'lines' : 'text', maxLength, pattern }
  if (type === 'array' && first.items?.type === 'string') return { ...common, kind: 'list' }
  const columns = type === 'array' && first.items !== undefined ? fieldsOf(first.items) : []
  const ports = portsWith(columns)
  if (ports !== undefined) return { ...common, ...ports }
  if (columns.length > 0 && columns.every(({ kind }) => kind === 'text' || kind === 'number' || kind === 'choice'))
    return { ...common, kind: 'table', columns }
  return { ...common, kind: 'json' }
}

/** The field for the ports of a switch, from the members of one; undefined: they are something else. */
function portsWith(
  columns: readonly FormField[],
): { kind: 'ports'; modes: string[]; ethertypes: string[] } | undefined {
  const choices = (name: string) => {
    const column = columns.find((it) => it.name === name)
    return column?.kind === 'choice' ? column.options.map(String) : undefined
  }
  const [modes, ethertypes = []] = [choices('type'), choices('ethertype')]
  const hasPorts = ['port_number', 'vlan'].every((name) => columns.some((it) => it.name === name))
  return modes !== undefined && hasPorts ? { kind: 'ports', modes, ethertypes } : undefined
}

/** The default of a value, also of one that may be null. */
export const defaultOf = (schema: Schema | undefined): unknown =>
  schema?.default ?? schema?.anyOf?.find((member) => member.default !== undefined)?.default

/** The schemas of which a value fits one, without null. */
const membersOf = (schema: Schema): readonly Schema[] =>
  schema.anyOf?.flatMap(membersOf) ?? (schema.type === 'null' ? [] : [schema])

/** Parts of the names of settings that are written in capitals. */
const capitals = new Set(
  'acpi bios cpu hda hdb hdc hdd id ip iou l1 mac mb nat npe nvram qemu ram url vlan vm vnc wic'.split(' '),
)
/** Those that are written in another way. */
const spellings: Readonly<Record<string, string>> = {
  addr: 'address',
  cdrom: 'CD-ROM',
  cpus: 'CPUs',
  ethertype: 'EtherType',
  idlepc: 'Idle-PC',
  iomem: 'I/O memory',
  ...{
    iourc: 'IOURC',
    ipv6: 'IPv6',
    lport: 'local port',
    rhost: 'remote host',
    rport: 'remote port',
    vmname: 'VM name',
  },
}

/** `mac_addr` -> `MAC address`, `slot0` -> `Slot 0`. */
const titleOf = (name: string): string => {
  const words = name.split('_').map((part) => {
    const [, word = part, number = ''] = /^(disk|slot|wic)(\d)$/.exec(part) ?? []
    return (spellings[word] ?? (capitals.has(word) ? word.toUpperCase() : word)) + (number && ` ${number}`)
  })
  const title = words.join(' ')
  return title.charAt(0).toUpperCase() + title.slice(1)
}

/** A value as the text of its field. */
export function textOf(field: FormField, value: unknown): string {
  if (value === undefined || value === null) return field.kind === 'ports' ? '[]' : ''
  if (field.kind === 'list' && Array.isArray(value)) return value.join('\n')
  if (field.kind === 'ports') return JSON.stringify(rowsOf(value as RangedPort[]))
  return field.kind === 'json' || field.kind === 'table' ? JSON.stringify(value, null, 2) : String(value)
}

/** The value of the text of a field. Throws an Error that says what is wrong. An empty number stands for null: unchanged. */
export function valueIn(field: FormField, text: string): unknown {
  switch (field.kind) {
    case 'number': {
      if (text.trim() === '') return null
      const value = Number(text)
      if (!Number.isFinite(value)) throw new Error(`${field.title}: expected a number`)
      return value
    }
    case 'choice':
      return field.options.find((it) => String(it) === text) ?? null
    case 'list': {
      const lines = text.split('\n').map((it) => it.trim())
      return lines.filter((it) => it !== '')
    }
    case 'ports':
      return portsOf(JSON.parse(text) as PortRow[])
    case 'json':
    case 'table':
      if (text.trim() === '') return null
      try {
        return JSON.parse(text)
      } catch {
        throw new Error(`${field.title}: expected JSON`)
      }
    default:
      return text
  }
}

/** A row of a table. */
export type TableRow = Readonly<Record<string, unknown>>

/** The row with another text in a column. An empty one is left out: the service has a default. */
export function withCell(row: TableRow, column: FormField, text: string): TableRow {
  const { [column.name]: _, ...others } = row
  const value = valueIn(column, text)
  return value === null || (value === '' && column.kind !== 'choice') ? others : { ...others, [column.name]: value }
}

/** A row for the end of a table: with the next numbers of the columns that must be there. */
export function nextRow(rows: readonly TableRow[], columns: readonly FormField[]): TableRow {
  const next = (name: string) => Math.max(-1, ...rows.map((row) => Number(row[name] ?? 0))) + 1
  const numbered = columns.filter((it) => it.kind === 'number' && it.isRequired)
  return Object.fromEntries(numbered.map(({ name }) => [name, next(name)]))
}
