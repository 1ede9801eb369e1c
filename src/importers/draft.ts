import { defaultMaxObjects } from '../labfile/max-objects.ts'
import { managementName } from '../labfile/schema.ts'
import type { Fields, LabFileData } from '../labfile/text.ts'
import { maxValues } from '../labfile/tree.ts'
import { withoutVariables } from '../labfile/variables.ts'
import { tooLarge } from '../lib/errors/api-error.ts'
import { compareText } from '../lib/text/compare-text.ts'
import { notInLine } from '../lib/text/one-line.ts'
import { FreeNames, nameKey } from '../model/lab/names.ts'
import { isUuid } from '../model/schema/fields.ts'
import {
  type DraftFile,
  type DraftLink,
  type DraftNode,
  type DraftSegment,
  type NodeOrigin,
  removeFaults,
} from './checked.ts'
import type { MachineModel } from './machines.ts'
import type { LeftOut, Part, Source } from './source.ts'

/** An image that nodes of the lab need; it is not in the file that was imported. */
interface RequiredImage {
  readonly kind: string
  readonly image: string
  readonly md5?: string
  readonly nodes: readonly string[]
}

/** A node of the lab file, and where it comes from in the file of the other program. */
export interface ImportedNode extends NodeOrigin {
  readonly name: string
  readonly kind: string
  readonly line: number
  readonly column: number
}

/** A foreign lab as a lab file, and what this one does not have of it. */
export interface ConvertedLab {
  readonly file: LabFileData
  /** Without the segments. */
  readonly nodes: readonly ImportedNode[]
  readonly images: readonly RequiredImage[]
  readonly leftOut: readonly LeftOut[]
}

/** One end of a link of a draft. */
export interface DraftEnd {
  readonly name: string
  /** Of a node: the name of the port. Absent: its only one. Of a segment: the number, absent: the next free one. */
  readonly port?: string
}

/** The longest text `about` of a lab file, in UTF-16 code units. */
const maxAbout = 4096

/** A lab file that is being made of a foreign lab. */
export class Draft {
  readonly #bridgesPassTags: boolean
  readonly #names = new Set<string>()
  readonly #free = new FreeNames((key) => this.#names.has(key))
  readonly #nodes = new Map<string, DraftNode>()
  readonly #segments = new Map<string, DraftSegment>()
  readonly #links: DraftLink[] = []
  readonly #taken = new Set<string>()
  #management: { part: Part; fields: Fields } | undefined
  #refusal: unknown
  #values = 0
  #objects = 0

  /** `bridgesPassTags`: the switches of the other program are bridges that pass tagged frames at all ports. */
  constructor({ bridgesPassTags }: { bridgesPassTags: boolean }) {
    this.#bridgesPassTags = bridgesPassTags
  }

  /** Adds a node, and returns the name that it has: a lab file has no two names that differ in case only. */
  node(part: Part, name: string, fields: Fields, origin: NodeOrigin): string {
    this.#add(part, sizeOf(fields))
    const own = this.#name(part, name)
    this.#nodes.set(own, { part, fields, origin })
    return own
  }

  /** Adds a segment, and returns its name. */
  segment(part: Part, name: string, fields: Fields): string {
    this.#add(part, sizeOf(fields))
    const own = this.#name(part, name)
    this.#segments.set(own, { part, fields, members: [] })
    return own
  }

  /** Gives the lab a management network. */
  management(part: Part, fields: Fields): void {
    this.#management = { part, fields }
  }

  /** 413 when the lab file would have more values than one may have. For what many nodes have of one part of the file, too. */
  count(part: Part, values: number): void {
    this.#values += values
    if (this.#values > maxValues) throw tooLarge(`${part.where}: the lab file would have more than ${maxValues} values`)
  }

  /** Counts a node, a segment or a link. */
  #add(part: Part, values: number): void {
    this.#objects += 1
    const most = defaultMaxObjects
    if (this.#objects > most)
      throw tooLarge(`${part.where}: the lab file would have more than ${most} nodes, segments and links`)
    this.count(part, values)
  }

  isSegment(name: string): boolean {
    return this.#segments.has(name)
  }

  /** Adds a link; one whose end is linked already is left out. A link of a segment is a member of it. */
  link(part: Part, first: DraftEnd, second: DraftEnd, fields: Fields = {}): void {
    this.#add(part, 3 + sizeOf(fields))
    const keys = [first, second].flatMap((end) => this.#keyOf(end) ?? [])
    const taken = [first, second].find((end) => this.#taken.has(this.#keyOf(end) ?? ''))
    if (taken !== undefined || (keys.length === 2 && keys[0] === keys[1]))
      return part.leaveOut(`the link is not imported: ${endText(taken ?? first)} has another link`)
    for (const key of keys) this.#taken.add(key)
    const [segment, other] = this.isSegment(first.name) ? [first, second] : [second, first]
    const bridge = this.#segments.get(segment.name)
    if (bridge === undefined) {
      const ends = [endText(first), endText(second)]
      this.#links.push({ part, value: Object.keys(fields).length === 0 ? ends : { ends, ...fields } })
      return
    }
    // A pc sends no tags.
    const isPc = this.#nodes.get(other.name)?.fields.kind === 'pc'
    const passesTags = this.#bridgesPassTags && bridge.fields.kind === 'switch' && !isPc
    const numbered = {
      ...(segment.port !== undefined && { port: Number(segment.port) }),
      ...(passesTags && { trunk: true }),
      ...fields,
    }
    const end = endText(other)
    bridge.members.push({ part, value: Object.keys(numbered).length === 0 ? end : { end, ...numbered } })
  }

  /** Reads a node of the source. One that cannot be read is left out. */
  readNode<T>(part: Part, read: (part: Part) => T): T | undefined {
    return part.attempt(() => {
      try {
        return read(part)
      } catch (error) {
        this.#refusal ??= error
        throw error
      }
    })
  }

  /** Throws the first reason, when no node of the source could be read. */
  requireNodes(): void {
    if (this.#nodes.size + this.#segments.size === 0 && this.#refusal !== undefined) throw this.#refusal
  }

  /** The lab file, which is valid: what a lab file cannot have was left out, and is listed. */
  finish(
    lab: string,
    { about, source }: { about?: { text: string; part: Part } | undefined; source: Source },
  ): ConvertedLab {
    const draft: DraftFile = {
      head: { lab, version: 1, ...aboutOf(about), ...this.#managementOf() },
      network: this.#management?.part,
      nodes: this.#nodes,
      segments: this.#segments,
      links: this.#links,
    }
    removeFaults(draft)
    const fieldsOf = new Map([...this.#nodes].map(([name, { fields }]) => [name, fields]))
    const imported = [...this.#nodes].flatMap(([name, { part, fields, origin }]) => {
      const { line, column } = part.at
      return origin === undefined ? [] : [{ name, kind: String(fields.kind), line, column, ...origin }]
    })
    const images = imagesOf(fieldsOf, new Set(imported.flatMap((it) => (it.cannotRun === undefined ? [] : [it.name]))))
    const segments = [...this.#segments].map(([name, { fields, members }]): [string, Fields] => [
      name,
      { ...fields, members: members.map(({ value }) => value) },
    ])
    const { templates, nodes } = withTemplates(fieldsOf)
    const { management, ...head } = draft.head
    const file: LabFileData = {
      ...head,
      ...(Object.keys(templates).length > 0 && { templates }),
      nodes,
      ...(segments.length > 0 && { segments: Object.fromEntries(segments) }),
      ...(management !== undefined && { management }),
      ...(this.#links.length > 0 && { links: this.#links.map(({ value }) => value) }),
    }
    return { file: withoutVariables(file) as LabFileData, nodes: imported, images, leftOut: source.leftOut }
  }

  /** The management network, with a name that no node has. */
  #managementOf(): { management?: Fields } {
    if (this.#management === undefined) return {}
    const name = this.#free.of(managementName)
    return { management: { ...this.#management.fields, ...(name !== managementName && { name }) } }
  }

  /** What an end takes; undefined for a port of a segment without a number: it is the next free one. */
  #keyOf({ name, port }: DraftEnd): string | undefined {
    return this.isSegment(name) && port === undefined ? undefined : `${nameKey(name)}:${port ?? ''}`
  }

  #name(part: Part, name: string): string {
    const line = name.trim().replaceAll(notInNames, '-')
    const clean = isUuid(line) ? `node-${line}` : cut(line, maxName)
    const own = this.#free.of(clean || 'node')
    if (own !== name)
      part.change(`the name ${JSON.stringify(name.slice(0, 80))} is ${JSON.stringify(own)} in the lab file`)
    this.#names.add(nameKey(own))
    return own
  }
}

const notInNames = new RegExp(`[:/${notInLine}\\p{Cs}]`, 'gu')
const maxName = 255

/** The description, within the limit of a lab file. */
function aboutOf({ text, part }: { text: string; part?: Part } = { text: '' }): { about?: string } {
  if (text.length > maxAbout)
    part?.change(`only the first ${maxAbout} characters are imported: "about" of a lab file is limited to that`)
  return text === '' ? {} : { about: cut(text, maxAbout) }
}

/** The beginning of a text, without half a surrogate pair at its end. */
const cut = (text: string, length: number): string => text.slice(0, length).replace(/[\ud800-\udbff]$/, '')

/** The images that nodes need, by kind and name. `without`: names of nodes for which no image is known. */
function imagesOf(nodes: ReadonlyMap<string, Fields>, without: ReadonlySet<string>): RequiredImage[] {
  const images = new Map<string, RequiredImage & { nodes: string[] }>()
  const wanted = [...nodes].flatMap(([name, { kind, image, kernel_image, initrd }]) =>
    without.has(name) ? [] : [image, kernel_image, initrd].map((file) => ({ name, kind, image: file })),
  )
  for (const { name, kind, image } of wanted) {
    if (typeof image !== 'string') continue
    const [file = '', md5] = image.split('@md5:')
    const key = `${kind} ${image}`
    const entry = images.get(key) ?? { kind: String(kind), image: file, ...(md5 !== undefined && { md5 }), nodes: [] }
    entry.nodes.push(name)
    images.set(key, entry)
  }
  return [...images.values()]
}

/** Fields that are of one node. */
const own = new Set(['at', 'labels', 'config', 'day0', 'after', 'kernel_command_line', 'management'])
const fewestShared = 3

/** Takes what several nodes of one image have in common into a template. */
function withTemplates(nodes: ReadonlyMap<string, Fields>): {
  templates: Record<string, Fields>
  nodes: Record<string, Fields>
} {
  const groups = new Map<string, Fields[]>()
  const groupOf = ({ kind, image, initrd }: Fields) => JSON.stringify([kind, image, initrd])
  for (const fields of nodes.values()) {
    const group = groups.get(groupOf(fields))
    if (group === undefined) groups.set(groupOf(fields), [fields])
    else group.push(fields)
  }
  const templates: Record<string, Fields> = {}
  const taken = new Set<string>()
  const free = new FreeNames((key) => taken.has(key))
  const names = new Map<string, string>()
  for (const [group, [first = {}, ...others]] of groups) {
    const isShared = ([key, value]: [string, unknown]) =>
      !own.has(key) && others.every((other) => JSON.stringify(other[key]) === JSON.stringify(value))
    const shared = Object.entries(first).filter(isShared)
    if (others.length === 0 || shared.length < fewestShared) continue
    const wanted = String(first.image ?? first.initrd ?? first.kind)
      .replace(/@.*/, '')
      .replace(/\.\w{1,6}$/, '')
    const name = free.of(wanted.split('/').at(-1) ?? wanted)
    taken.add(nameKey(name))
    templates[name] = Object.fromEntries(shared)
    names.set(group, name)
  }
  const short = [...nodes].map(([name, fields]): [string, Fields] => {
    const is = names.get(groupOf(fields))
    if (is === undefined) return [name, fields]
    return [
      name,
      { is, ...Object.fromEntries(Object.entries(fields).filter(([key]) => !(key in (templates[is] ?? {})))) },
    ]
  })
  return { templates, nodes: Object.fromEntries(short) }
}

/** The number of values in a value; a long text counts as several. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length / 100)
  if (value === null || typeof value !== 'object') return 1
  return Object.values(value).reduce<number>((sum, it) => sum + sizeOf(it), 1)
}

const endText = ({ name, port }: DraftEnd): string => (port === undefined ? name : `${name}:${port}`)

/** Whether the host may have a device of that name: Linux has at most 15 characters (IFNAMSIZ). */
export const isDevice = (name: string): boolean => /^[^\s/:]{1,15}$/.test(name)

/** The number at the end of the name of a port; undefined without one. */
export const lastNumber = (port: string): number | undefined => {
  const [digits] = /\d{1,4}$/.exec(port) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/**
 * The ports of a machine whose links name them, and how many adapters it needs. `adapterOf`: the adapter that has a name, by the rule of
 * its kind. Where no rule tells two names apart, all names get adapters in their order, which is listed. `names`: for the member `ports`;
 * undefined when they are `eth0`, `eth1` and so on, as without it.
 */
export function namedPorts(
  used: ReadonlyMap<string, Part>,
  adapterOf: (port: string) => number | undefined,
  maxAdapters: number,
): { adapters: number; names: string | string[] | undefined } {
  const byAdapter = new Map<number, string>()
  const others: string[] = []
  const all = [...used.keys()]
  const adapters = new Map(all.map((port) => [port, adapterOf(port)]))
  const numbered = all.filter((port) => isIndex(adapters.get(port), maxAdapters))
  if (new Set(numbered.map((port) => adapters.get(port))).size < numbered.length) {
    const inOrder = [...all].sort(byNumbers)
    used
      .get(inOrder[0] ?? '')
      ?.change(
        `no rule is known for the slots in these names of interfaces, so they are the adapters 1, 2 and so on in this order: ${inOrder.slice(0, 20).join(', ')}${inOrder.length > 20 ? ' and so on' : ''}`,
      )
    others.push(...inOrder)
  } else {
    for (const port of numbered) byAdapter.set(adapters.get(port) as number, port)
    others.push(...all.filter((port) => !isIndex(adapters.get(port), maxAdapters)))
  }
  // A name without a number gets the next adapter that is free.
  let next = 1
  for (const port of others) {
    while (byAdapter.has(next)) next += 1
    if (next < maxAdapters) byAdapter.set(next, port)
    else used.get(port)?.leaveOut(`is not imported: a machine has at most ${maxAdapters} adapters`)
  }
  const count = Math.max(0, ...byAdapter.keys()) + 1
  return { adapters: count, names: portNames(namesOfAdapters(count, byAdapter)) }
}

/** The names of all adapters, where some have one. */
export function namesOfAdapters(count: number, named: ReadonlyMap<number, string>): string[] {
  const used = new Set([...named.values()].map(nameKey))
  const spare = (adapter: number) => (used.has(`eth${adapter}`) ? `unused${adapter}` : `eth${adapter}`)
  return Array.from({ length: count }, (_, adapter) => named.get(adapter) ?? spare(adapter))
}

const isIndex = (adapter: number | undefined, count: number): boolean =>
  adapter !== undefined && Number.isInteger(adapter) && adapter >= 0 && adapter < count

/** The order of names with numbers in them: `e1-2` is before `e1-10`. */
export function byNumbers(a: string, b: string): number {
  const [left, right] = [a, b].map((name) => name.split(/(\d+)/))
  for (const [index, word = ''] of (left ?? []).entries()) {
    const other = right?.[index] ?? ''
    if (word === other) continue
    const difference = index % 2 === 1 ? Number(word) - Number(other) : 0
    return difference || compareText(word, other)
  }
  return (left?.length ?? 0) - (right?.length ?? 0)
}

/** The member `ports` of a machine: a pattern where the names follow one, else all names. Undefined for `eth0`, `eth1` and so on. */
export function portNames(names: readonly string[]): string | string[] | undefined {
  const [, stem = '', digits = ''] = /^(.*?)(\d{0,4})$/.exec(names[0] ?? '') ?? []
  const first = Number(digits)
  const isRow = digits !== '' && names.every((name, index) => name === `${stem}${first + index}`) && !/[{}]/.test(stem)
  if (!isRow || first > 1) return names.length === 0 ? undefined : [...names]
  return stem === 'eth' && first === 0 ? undefined : `${stem}${first === 0 ? '{0}' : '{1-}'}`
}

/** A CD or disk with the configuration of a machine. */
export const day0Fields = (
  { label, medium }: NonNullable<MachineModel['day0']>,
  files: Fields,
  { hda_disk_interface }: Fields,
): Fields => ({
  day0: { ...(medium !== undefined && { medium }), label, files },
  ...(medium === 'disk' && { hdb_disk_interface: hda_disk_interface }),
})

/** The files of a CD. cloud-init needs `meta-data` beside `user-data`. */
export const cdOf = (file: string, config: unknown): Fields => ({
  [file]: config,
  ...(file === 'user-data' && { 'meta-data': { text: '' } }),
})

/** A position on the map, within its limits. */
export const mapPosition = (coordinates: readonly number[]): number[] =>
  coordinates.map((coordinate) => Math.round(Math.max(-1_000_000, Math.min(1_000_000, coordinate))))
