import type { Static, TObject, TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { kindOf, type NodeKindName } from '../model/kinds/node.ts'
import { type LabNode, type LabPort, mapFields } from '../model/lab/node.ts'
import { portsOf } from '../model/lab/ports.ts'
import type { Placement } from '../model/placement.ts'
import { oursFor } from '../model/validation/foreign-words.ts'
import { expectation } from '../model/validation/validate.ts'
import type { DesiredConfig, DesiredNode, DesiredSettings, WantedDigest } from './desired.ts'
import { type Diagnostics, didYouMean, quoted } from './diagnostics.ts'
import type { Contents } from './files.ts'
import { nodeIdOf } from './ids.ts'
import { type GivenManagement, readNodeManagement } from './management-fields.ts'
import type { Position } from './position.ts'
import type { Reader } from './reader.ts'
import { readReady } from './ready.ts'
import { type Condition, kindOfWord, kindWords, nodeKeyNames, nodeSchemas } from './schema.ts'
import { isSegmentKind } from './segment-kinds.ts'
import { wordOfKind } from './short-words.ts'
import { at, type MapValue } from './values.ts'

/** What the parts of a lab file are read with. */
export interface Reading {
  readonly lab: string
  /** Compute of nodes that name none. */
  readonly compute: string | undefined
  /** Placement of all nodes; each may say more. */
  readonly placement: Placement | undefined
  /** Whether the lab has a management network. */
  readonly hasManagement: boolean
  readonly diagnostics: Diagnostics
  readonly reader: Reader
  readonly contents: Contents
}

/** A node of the file, and its ports. */
export interface ReadNode {
  readonly node: DesiredNode
  /** Made anew at each call: most machines have more ports than links. */
  readonly ports: () => readonly LabPort[]
}

/** The keys that nodes and segments have in common. */
export interface Common {
  at?: [number, number]
  compute?: string
  symbol?: string
  labels?: Record<string, string>
  placement?: Placement
  was?: string
}

interface NodeKeys extends Common {
  image?: string
  config?: string | { text?: string; file?: string; private?: string | { text: string } }
  day0?: { medium?: 'cd' | 'disk'; label?: string; files: Record<string, string | { text: string }> }
  management?: GivenManagement
  ports?: string | string[]
  start?: boolean
  after?: string[]
  ready?: Static<typeof Condition> | Static<typeof Condition>[]
}

/** The kind of a node; a fault without any. */
export function kindIn(map: MapValue, where: Position, diagnostics: Diagnostics): NodeKindName | undefined {
  const value = at(map, 'kind')
  if (value === undefined) {
    diagnostics.add(where, 'the kind is missing', `write kind: or is:; kinds are ${kindWords.join(', ')}`)
    return undefined
  }
  const word = value.type === 'scalar' ? value.source : ''
  const kind = kindOfWord(word)
  if (kind !== undefined) return kind
  const ours = oursFor(word.toLowerCase()) ?? word
  if (isSegmentKind(ours)) diagnostics.add(value.at, `a ${word} is a segment`, 'write it under `segments`')
  else if (kindOfWord(ours) !== undefined)
    diagnostics.add(value.at, `unknown kind ${quoted(word)}`, `did you mean ${quoted(ours)}?`)
  else diagnostics.add(value.at, `unknown kind ${quoted(word)}`, () => didYouMean(word, kindWords))
  return undefined
}

/** Reads a node, with its templates merged. Undefined when it has a fault. */
export function readNode(name: string, map: MapValue, key: Position, reading: Reading): ReadNode | undefined {
  const { diagnostics, reader } = reading
  const kind = kindIn(map, key, diagnostics)
  if (kind === undefined) return undefined
  const schema = nodeSchemas[kind] as TObject
  const given = readKeys(kind, schema, map, reading)
  if (given === undefined) return undefined
  const descriptor: KindDescriptor = kindOf(kind)
  const keys = new ValuePositions(map, key)
  const { fields, rest } = split(kind, given)
  const own = rest as NodeKeys
  const configs = readConfigs(own, fields, { kind, keys, reading })
  const image = own.image === undefined ? undefined : imageIn(own.image)
  if (descriptor.image !== undefined && own.image !== undefined) {
    const { field } = descriptor.image
    if (field !== 'image' && field in fields)
      diagnostics.add(keys.of(field), `${field} and image are the same setting`, 'write image alone')
    if (typeof image === 'string') diagnostics.add(keys.of('image'), image)
    else if (image !== undefined) fields[field] = image.name
  }
  if (!hasRequired(kind, fields, key, diagnostics)) return undefined
  const management = readNodeManagement(own.management, { kind, fields, map, keys, reading })
  const filled = withDefaults(kind, fields)
  const issue = diagnostics.isEmpty ? descriptor.settingsIssue?.(filled) : undefined
  if (issue !== undefined) diagnostics.add(keys.of(issue.split(/[ :]/, 1)[0] ?? ''), issue)
  if (descriptor.hasFiles === true) readFiles(fields, { map, keys, reading })
  const naming = portNames(own.ports, { kind, filled, keys, diagnostics })
  const settings = settingsOf(own, fields, naming, { keys, diagnostics })
  const day0 = readDay0(own.day0, { fields, map, keys, reading })
  const ready = readReady(own.ready, { map, kind, settings, reader, diagnostics })
  const node: DesiredNode = {
    name,
    node_id: nodeIdOf(reading.lab, name),
    ...common(own, kind, reading),
    settings,
    properties: fields,
    ...(typeof image === 'object' && image.digest !== undefined && { imageDigest: image.digest }),
    configs,
    ...(day0 !== undefined && { day0 }),
    labels: own.labels ?? {},
    start: own.start ?? true,
    after: own.after ?? [],
    ...(ready !== undefined && { ready }),
    ...(management !== undefined && { management }),
    at: key,
    keys: keys.all(),
  }
  return { node, ports: () => portsIn(kind, filled, settings) }
}

/** The members of a node and of a segment that are read alike. */
export const common = (own: Common, kind: NodeKindName, { compute, placement }: Reading) => {
  const compute_id = own.compute ?? compute
  return {
    kind,
    ...(own.was !== undefined && { was: own.was }),
    ...(compute_id !== undefined && { compute_id }),
    ...placementOf(placement, own.placement),
  }
}

/** The placement of a node, with that of the lab: its own policy wins, and the labels of both are wanted. */
function placementOf(lab: Placement = {}, own: Placement = {}): { placement?: Placement } {
  const labels = [...new Set([...(lab.labels ?? []), ...(own.labels ?? [])])]
  const both = { ...lab, ...own, ...(labels.length > 0 && { labels }) }
  return Object.keys(both).length === 0 ? {} : { placement: both }
}

/** The positions of the values of a map. */
export class ValuePositions {
  readonly #map: MapValue
  readonly #key: Position

  constructor(map: MapValue, key: Position) {
    this.#map = map
    this.#key = key
  }

  /** Of the value of a key; of the whole when the key is missing. */
  of(name: string): Position {
    return at(this.#map, name)?.at ?? this.#key
  }

  all(): Record<string, Position> {
    return Object.fromEntries([...this.#map.entries].map(([name, { value }]) => [name, value.at]))
  }
}

/** Reads the keys of a node; the fault of a key that only other kinds have says so. */
function readKeys(
  kind: NodeKindName,
  schema: TObject,
  map: MapValue,
  { diagnostics, reader }: Reading,
): Record<string, unknown> | undefined {
  const entries = new Map(map.entries)
  for (const [name, { key }] of map.entries) {
    if (Object.hasOwn(schema.properties, name)) continue
    if (!nodeKeyNames.includes(name) && name !== 'links') continue
    diagnostics.add(
      { ...key, path: map.at.path },
      name === 'links' ? 'a node has no links' : `a node of kind ${wordOfKind(kind)} has no ${quoted(name)}`,
      name === 'links' ? 'write them under `links`' : undefined,
    )
    entries.delete(name)
  }
  return reader.read(schema, { ...map, entries }) as Record<string, unknown> | undefined
}

/** The fields of the schema of a create, and the keys of the lab file. Null means the default, as an absent key does. */
export function split(kind: NodeKindName, given: Readonly<Record<string, unknown>>) {
  const { properties } = kindOf(kind).create
  const isField = ([name, value]: [string, unknown]) =>
    Object.hasOwn(properties, name) && name !== 'image' && value !== null
  const isKey = ([name]: [string, unknown]) => !Object.hasOwn(properties, name) || name === 'image'
  const entries = Object.entries(given).filter(([name]) => name !== 'kind' && name !== 'is')
  return {
    fields: Object.fromEntries(entries.filter(isField)) as Record<string, unknown>,
    rest: Object.fromEntries(entries.filter(isKey)) as Record<string, unknown>,
  }
}

/** `vyos.qcow2@sha256:HEX`; a text is a fault. */
function imageIn(text: string): { name: string; digest?: WantedDigest } | string {
  const [, name, algorithm, hex = ''] = /^(.+)@(sha256|md5):([^@]*)$/i.exec(text) ?? []
  if (name === undefined || algorithm === undefined) return { name: text }
  const digits = algorithm.toLowerCase() === 'md5' ? 32 : 64
  if (!/^[0-9a-f]+$/i.test(hex) || hex.length !== digits)
    return `the ${algorithm} digest of an image has ${digits} hexadecimal digits, got ${quoted(hex)}`
  return { name, digest: { algorithm: algorithm.toLowerCase() as WantedDigest['algorithm'], hex: hex.toLowerCase() } }
}

/** Whether a node has what the schema of a create requires; a fault for each field that it lacks. The image goes by its key in lab files. */
function hasRequired(
  kind: NodeKindName,
  fields: Readonly<Record<string, unknown>>,
  key: Position,
  diagnostics: Diagnostics,
): boolean {
  const { create, image }: KindDescriptor = kindOf(kind)
  const missing = (create.required ?? []).filter((name) => name !== 'name' && fields[name] === undefined)
  for (const name of missing) {
    const word = name === image?.field ? 'image' : name
    diagnostics.add(key, `${quoted(word)} is missing`, `expected ${expectation(create.properties[name] as TSchema)}`)
  }
  return missing.length === 0
}

interface Inputs {
  readonly kind: NodeKindName
  readonly keys: ValuePositions
  readonly reading: Reading
}

/** The configurations: of `config`, or of the fields of the kind that have their texts. The fields are removed. */
function readConfigs(
  own: NodeKeys,
  fields: Record<string, unknown>,
  { kind, keys, reading }: Inputs,
): Record<string, DesiredConfig> {
  const { configs: access = {}, create }: KindDescriptor = kindOf(kind)
  const { diagnostics, contents } = reading
  const found = new Map<string, DesiredConfig>()
  for (const [name, { field }] of Object.entries(access)) {
    const text = fields[field]
    delete fields[field]
    if (typeof text !== 'string') continue
    if (own.config !== undefined)
      diagnostics.add(keys.of(field), `${field} and config are the same setting`, 'write config alone')
    found.set(name, contents.of({ text }, keys.of(field)))
  }
  const [first = ''] = Object.keys(access)
  const { config } = own
  const where = keys.of('config')
  if (typeof config === 'string') found.set(first, contents.of(config, where))
  else if (config !== undefined) {
    const { text, file, private: secret } = config
    if (text !== undefined && file !== undefined)
      diagnostics.add(where, 'text and file are the same configuration', 'write one of them')
    if (text === undefined && file === undefined && secret === undefined)
      diagnostics.add(where, 'the configuration is empty', 'write { text: "..." } or { file: ./NAME.cfg }')
    if (text !== undefined) found.set(first, contents.of({ text }, where))
    else if (file !== undefined) found.set(first, contents.of(file, where))
    if (secret !== undefined && !Object.hasOwn(access, 'private'))
      diagnostics.add(where, `a node of kind ${wordOfKind(kind)} has no private configuration`)
    else if (secret !== undefined) found.set('private', contents.of(secret, where))
  }
  for (const [name, config] of found) {
    const target = access[name]
    if (target === undefined || !contents.has(config)) continue
    const { text, at: position } = config
    const schema = create.properties[target.field] as TSchema
    if (text === '' && target.keepsEmpty !== true)
      diagnostics.add(
        position,
        `a node of kind ${wordOfKind(kind)} cannot have an empty configuration`,
        'leave the key out',
      )
    else if (!Check(schema, text))
      diagnostics.add(position, `the configuration is too long: expected ${expectation(schema)}`)
  }
  return Object.fromEntries(found)
}

/** The default of a member of a create; undefined without any. */
export const defaultOf = (schema: TSchema): unknown =>
  schema.default ?? (schema.anyOf as TSchema[] | undefined)?.find((option) => option.default !== undefined)?.default

/** The fields with the defaults of the schema. */
function withDefaults(kind: NodeKindName, fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { properties } = kindOf(kind).create
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, fields[name] ?? defaultOf(schema)]),
  )
}

type Naming = Pick<DesiredSettings, 'port_name_format' | 'custom_adapters'>

/** The ports of a node that is made with these settings. */
function portsIn(kind: NodeKindName, filled: Readonly<Record<string, unknown>>, settings: Naming): LabPort[] {
  const { portNameFormat }: KindDescriptor = kindOf(kind)
  return portsOf({
    node_type: kind,
    properties: filled,
    port_name_format: settings.port_name_format ?? portNameFormat ?? mapFields.port_name_format.default,
    port_segment_size: 0,
    first_port_name: null,
    custom_adapters: settings.custom_adapters ?? [],
  })
}

/** The ports of a node as the lab file has it. */
export const portsOfNode = ({ kind, properties, settings }: DesiredNode): LabPort[] =>
  portsIn(kind, withDefaults(kind, properties), settings)

interface PortInputs {
  readonly kind: NodeKindName
  readonly filled: Readonly<Record<string, unknown>>
  readonly keys: ValuePositions
  readonly diagnostics: Diagnostics
}

/** Names of ports: a pattern as `port_name_format`, a list as names of adapters. */
function portNames(ports: string | string[] | undefined, { kind, filled, keys, diagnostics }: PortInputs): Naming {
  if (ports === undefined) return {}
  const where = keys.of('ports')
  const { ports: shapesOf }: KindDescriptor = kindOf(kind)
  const shapes = shapesOf?.(filled) ?? []
  if (shapes.some(({ name }) => name !== undefined)) {
    diagnostics.add(
      where,
      `the ports of a node of kind ${wordOfKind(kind)} have fixed names`,
      `the first one is ${shapes[0]?.name}`,
    )
    return {}
  }
  if (typeof ports === 'string') {
    const found = [...ports.matchAll(/\{([^}]*)\}/g)]
    const [, word = ''] = found[0] ?? []
    if (found.length === 1 && /^(?:0|\d-)$/.test(word) && !/[{}]/.test(ports.replace(/\{[^}]*\}/, '')))
      return {
        port_name_format: ports.replace(/\{[^}]*\}/, word === '0' || word === '0-' ? '{0}' : `{port${word[0]}}`),
      }
    const right = ports.replace(/\{(\d)\}/, '{$1-}')
    diagnostics.add(
      where,
      `${quoted(ports)} is not a pattern of names`,
      `write {0} once, or {1-} to count from 1${right === ports ? '' : `: ${right}`}`,
    )
    return {}
  }
  const seen = new Set<string>()
  const twice = ports.find((it) => {
    const isKnown = seen.has(it.toLowerCase())
    seen.add(it.toLowerCase())
    return isKnown
  })
  if (twice !== undefined) diagnostics.add(where, `two ports have the name ${quoted(twice)}`)
  if (ports.includes('')) diagnostics.add(where, 'the name of a port is empty')
  if (ports.length > shapes.length)
    diagnostics.add(where, `${ports.length} port names are given, but the node has ${shapes.length} ports`)
  return {
    custom_adapters: ports.map((port_name, index) => ({ adapter_number: shapes[index]?.adapter ?? index, port_name })),
  }
}

/** Moves the fields that a lab has beside the properties out of `fields`. */
function settingsOf(
  own: Common,
  fields: Record<string, unknown>,
  naming: Naming,
  { keys, diagnostics }: Pick<PortInputs, 'keys' | 'diagnostics'>,
): DesiredSettings {
  const { console, console_type, custom_adapters } = fields as {
    console?: number
    console_type?: string
    custom_adapters?: LabNode['custom_adapters']
  }
  for (const name of ['console', 'console_type', 'custom_adapters']) delete fields[name]
  const adapters = new Map<number, LabNode['custom_adapters'][number]>()
  for (const adapter of custom_adapters ?? []) {
    const members = Object.entries(adapter).filter(([, value]) => value !== null)
    if (adapters.has(adapter.adapter_number))
      diagnostics.add(keys.of('custom_adapters'), `the adapter ${adapter.adapter_number} occurs twice`)
    adapters.set(adapter.adapter_number, Object.fromEntries(members) as LabNode['custom_adapters'][number])
  }
  for (const adapter of naming.custom_adapters ?? []) {
    const other = adapters.get(adapter.adapter_number)
    if (other?.port_name !== undefined)
      diagnostics.add(
        keys.of('ports'),
        'ports and port_name of custom_adapters name the same port',
        'write one of them',
      )
    adapters.set(adapter.adapter_number, { ...other, ...adapter })
  }
  const [x, y] = own.at ?? []
  return {
    ...(x !== undefined && y !== undefined && { x, y }),
    ...(own.symbol !== undefined && { symbol: own.symbol }),
    ...(console !== undefined && { console }),
    ...(console_type !== undefined && { console_type }),
    ...(naming.port_name_format !== undefined && { port_name_format: naming.port_name_format }),
    ...(adapters.size > 0 && {
      custom_adapters: [...adapters.values()].sort((a, b) => a.adapter_number - b.adapter_number),
    }),
  }
}

/** The members of `settings` of a segment. */
export const segmentSettings = (own: Common): DesiredSettings => ({
  ...(own.at !== undefined && { x: own.at[0], y: own.at[1] }),
  ...(own.symbol !== undefined && { symbol: own.symbol }),
})

function readDay0(
  day0: NodeKeys['day0'],
  { fields, map, keys, reading }: Pick<Inputs, 'keys' | 'reading'> & { fields: Record<string, unknown>; map: MapValue },
) {
  if (day0 === undefined) return undefined
  const { contents, diagnostics } = reading
  const where = keys.of('day0')
  if (day0.label === undefined) diagnostics.add(where, '"label" is missing', 'write label: cidata for cloud-init')
  const { medium = 'cd', label = '' } = day0
  const drive = medium === 'cd' ? 'cdrom_image' : 'hdb_disk_image'
  if (fields[drive] !== undefined && fields[drive] !== '')
    diagnostics.add(keys.of(drive), `day0 and ${drive} need the same drive`, 'write one of them')
  const files = at(at(map, 'day0'), 'files')
  const texts = Object.entries(day0.files).map(([name, given]) => [
    name,
    contents.of(given, at(files, name)?.at ?? where),
  ])
  return contents.disc({ medium, label, files: Object.fromEntries(texts) }, where)
}

/** The files of a container, with the texts of those that are beside the lab file. */
function readFiles(
  fields: Record<string, unknown>,
  { map, keys, reading: { contents, diagnostics } }: Pick<Inputs, 'keys' | 'reading'> & { map: MapValue },
): void {
  const given = fields.files as { path: string; text?: string; file?: string; mode?: string }[] | undefined
  if (given === undefined) return
  const list = at(map, 'files')
  fields.files = given.map(({ path, text, file, mode }, index) => {
    const where = (list?.type === 'list' ? list.items[index]?.at : undefined) ?? keys.of('files')
    if ((text === undefined) === (file === undefined))
      diagnostics.add(where, `${quoted(path)} needs a text or a file`, 'write one of them')
    const content = contents.of(text === undefined && file !== undefined ? file : { text: text ?? '' }, where)
    return { path, text: content.text, ...(mode !== undefined && { mode }) }
  })
}
