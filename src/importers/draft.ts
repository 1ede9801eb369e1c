import { freeName, nameKey } from '../controller/names.ts'
import type { Fields, LabFileData } from '../labfile/text.ts'
import type { LeftOut, Part } from './source.ts'

/** An image that nodes of the lab need; it is not in the file that was imported. */
export interface AskedImage {
  readonly kind: string
  readonly image: string
  readonly md5?: string
  readonly nodes: readonly string[]
}

/** A foreign lab as a lab file, and what this one does not have of it. */
export interface ImportedLab {
  readonly file: LabFileData
  readonly images: readonly AskedImage[]
  readonly leftOut: readonly LeftOut[]
}

/** One end of a link of a draft. */
export interface DraftEnd {
  readonly name: string
  /** Of a node: the name of the port. Absent: its only one. Of a segment: the number, absent: the next free one. */
  readonly port?: string
}

/** A lab file that is being made of a foreign lab. */
export class Draft {
  readonly #bridgesPassTags: boolean
  readonly #names = new Set<string>()
  readonly #nodes = new Map<string, Fields>()
  readonly #segments = new Map<string, Fields & { members: unknown[] }>()
  readonly #links: unknown[] = []
  readonly #taken = new Map<string, string>()

  /** `bridgesPassTags`: the switches of the other program are bridges that pass tagged frames at all ports. */
  constructor({ bridgesPassTags }: { bridgesPassTags: boolean }) {
    this.#bridgesPassTags = bridgesPassTags
  }

  /** Adds a node, and returns the name that it has: a lab file has no two names that differ in case only. */
  node(wanted: Part, name: string, fields: Fields): string {
    const own = this.#free(wanted, name)
    this.#nodes.set(own, fields)
    return own
  }

  /** Adds a segment, and returns its name. */
  segment(wanted: Part, name: string, fields: Fields): string {
    const own = this.#free(wanted, name)
    this.#segments.set(own, { ...fields, members: [] })
    return own
  }

  isSegment(name: string): boolean {
    return this.#segments.has(name)
  }

  /** Adds a link. 400 when an end is linked already. A link of a segment is a member of it. */
  link(part: Part, first: DraftEnd, second: DraftEnd, fields: Fields = {}): void {
    for (const end of [first, second]) this.#take(part, end)
    const [segment, other] = this.isSegment(first.name) ? [first, second] : [second, first]
    const bridge = this.#segments.get(segment.name)
    if (bridge === undefined) {
      const ends = [endText(first), endText(second)]
      this.#links.push(Object.keys(fields).length === 0 ? ends : { ends, ...fields })
      return
    }
    // A pc sends no tags.
    const passesTags = this.#bridgesPassTags && bridge.kind === 'switch' && this.#nodes.get(other.name)?.kind !== 'pc'
    const numbered = {
      ...(segment.port !== undefined && { port: Number(segment.port) }),
      ...(passesTags && { trunk: true }),
      ...fields,
    }
    const end = endText(other)
    bridge.members.push(Object.keys(numbered).length === 0 ? end : { end, ...numbered })
  }

  /** The lab file. `images`: by kind and name, the nodes that need them. */
  finish(lab: string, { about, leftOut }: { about?: string | undefined; leftOut: readonly LeftOut[] }): ImportedLab {
    const images = new Map<string, { kind: string; image: string; md5?: string; nodes: string[] }>()
    for (const [name, { kind, image }] of this.#nodes) {
      if (typeof image !== 'string') continue
      const [file = '', md5] = image.split('@md5:')
      const key = `${kind} ${image}`
      const asked = images.get(key) ?? { kind: String(kind), image: file, ...(md5 !== undefined && { md5 }), nodes: [] }
      asked.nodes.push(name)
      images.set(key, asked)
    }
    const segments = Object.fromEntries(this.#segments)
    const { templates, nodes } = withTemplates(this.#nodes)
    const file: LabFileData = {
      lab,
      version: 1,
      ...(about !== undefined && about !== '' && { about }),
      ...(Object.keys(templates).length > 0 && { templates }),
      nodes,
      ...(this.#segments.size > 0 && { segments }),
      ...(this.#links.length > 0 && { links: this.#links }),
    }
    return { file, images: [...images.values()], leftOut }
  }

  #take(part: Part, end: DraftEnd): void {
    // The ports of a segment without a number are never taken.
    if (this.isSegment(end.name) && end.port === undefined) return
    const key = `${nameKey(end.name)}:${end.port ?? ''}`
    if (this.#taken.has(key)) throw part.fault(`${endText(end)} has two links`)
    this.#taken.set(key, endText(end))
  }

  #free(wanted: Part, name: string): string {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a name is one line
    const line = name.trim().replaceAll(/[:/\u0000-\u001f\u007f]/g, '-')
    const clean = line.slice(0, 255) || 'node'
    const own = freeName(clean, (key) => this.#names.has(key))
    if (own !== name)
      wanted.leaveOut(`the name ${JSON.stringify(name.slice(0, 80))} is ${JSON.stringify(own)} in the lab file`)
    this.#names.add(nameKey(own))
    return own
  }
}

/** Fields that are of one node. */
const own = new Set(['at', 'labels', 'config', 'day0', 'after', 'kernel_command_line'])
const fewestShared = 3

/** Takes what several nodes of one image have in common into a template. */
function withTemplates(nodes: ReadonlyMap<string, Fields>): {
  templates: Record<string, Fields>
  nodes: Record<string, Fields>
} {
  const groups = new Map<string, Fields[]>()
  const groupOf = ({ kind, image, initrd }: Fields) => JSON.stringify([kind, image, initrd])
  for (const fields of nodes.values()) groups.set(groupOf(fields), [...(groups.get(groupOf(fields)) ?? []), fields])
  const templates: Record<string, Fields> = {}
  const names = new Map<string, string>()
  for (const [group, [first = {}, ...others]] of groups) {
    const isShared = ([key, value]: [string, unknown]) =>
      !own.has(key) && others.every((it) => JSON.stringify(it[key]) === JSON.stringify(value))
    const shared = Object.entries(first).filter(isShared)
    if (others.length === 0 || shared.length < fewestShared) continue
    const wanted = String(first.image ?? first.initrd ?? first.kind)
      .replace(/@.*/, '')
      .replace(/\.\w{1,6}$/, '')
    const name = freeName(wanted.split('/').at(-1) ?? wanted, (key) =>
      Object.keys(templates).some((it) => nameKey(it) === key),
    )
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

export const endText = ({ name, port }: DraftEnd): string => (port === undefined ? name : `${name}:${port}`)

/** The number at the end of the name of a port; undefined without one. */
export const lastNumber = (port: string): number | undefined => {
  const [digits] = /\d{1,4}$/.exec(port) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/**
 * The ports of a machine whose links name them, and how many adapters it needs. `adapterOf` says which adapter has a name; two names may
 * not have the same one. `names`: for the member `ports`; undefined when they are `eth0`, `eth1` and so on, as without it.
 */
export function namedPorts(
  used: ReadonlyMap<string, Part>,
  adapterOf: (port: string) => number | undefined,
  maxAdapters: number,
): { adapters: number; names: string | string[] | undefined } {
  const byAdapter = new Map<number, string>()
  const others: string[] = []
  for (const [port, part] of used) {
    const adapter = adapterOf(port)
    if (adapter === undefined || adapter < 0 || adapter >= maxAdapters) others.push(port)
    else {
      const before = byAdapter.get(adapter)
      if (before !== undefined) throw part.fault(`the interfaces ${before} and ${port} are the same adapter ${adapter}`)
      byAdapter.set(adapter, port)
    }
  }
  // A name without a number gets the next adapter that is free.
  let next = 1
  for (const port of others) {
    while (byAdapter.has(next)) next += 1
    byAdapter.set(next, port)
  }
  const adapters = Math.max(0, ...byAdapter.keys()) + 1
  return { adapters, names: portNames(Array.from({ length: adapters }, (_, it) => byAdapter.get(it) ?? `eth${it}`)) }
}

/** The member `ports` of a machine: a pattern where the names follow one, else all names. Undefined for `eth0`, `eth1` and so on. */
export function portNames(names: readonly string[]): string | string[] | undefined {
  const [, stem = '', digits = ''] = /^(.*?)(\d{0,4})$/.exec(names[0] ?? '') ?? []
  const first = Number(digits)
  const isRow = digits !== '' && names.every((name, index) => name === `${stem}${first + index}`) && !/[{}]/.test(stem)
  if (!isRow || first > 1) return names.length === 0 ? undefined : [...names]
  return stem === 'eth' && first === 0 ? undefined : `${stem}${first === 0 ? '{0}' : '{1-}'}`
}

/** The files of a CD. cloud-init needs `meta-data` beside `user-data`. */
export const cdOf = (file: string, config: unknown): Fields => ({
  [file]: config,
  ...(file === 'user-data' && { 'meta-data': { text: '' } }),
})

/** A position on the map, within its limits. */
export const mapPosition = (coordinates: readonly number[]): number[] =>
  coordinates.map((it) => Math.round(Math.max(-1_000_000, Math.min(1_000_000, it))))
