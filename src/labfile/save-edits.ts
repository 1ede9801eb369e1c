import { Equal } from '@sinclair/typebox/value'
import type { LabCheck } from '../model/lab/task.ts'
import { derivedName } from './checks.ts'
import type { Desired, DesiredLink, DesiredNode } from './desired.ts'
import { isMap, type LabFileEdit, valueAt } from './edit.ts'
import { keyOf } from './names.ts'
import { impairmentKeys, managementName, taggingKeys } from './schema.ts'
import { isSegmentKind } from './segment-kinds.ts'
import { taskEdits } from './task-edits.ts'
import type { Fields, LabFileData } from './text.ts'

/** A change of a lab file, in its words. */
export interface SavedChange {
  readonly do: 'create' | 'update' | 'delete'
  readonly what: 'node' | 'segment' | 'link' | 'check' | 'task'
  readonly name: string
  /** The name that a node had in the file. */
  readonly was?: string
  /** Keys that change. */
  readonly keys: readonly string[]
}

/** Objects that a lab no longer has. */
export interface Lost {
  readonly nodes: ReadonlySet<DesiredNode>
  readonly links: ReadonlySet<DesiredLink>
}

export interface EditedObject extends SavedChange {
  readonly edits: readonly LabFileEdit[]
}

/** The edits of a file from one normal form to the next, by object. */
export class Edits {
  readonly #before: LabFileData
  readonly #after: LabFileData
  readonly #raw: unknown
  readonly #all: boolean

  constructor(before: LabFileData, after: LabFileData, raw: unknown, all: boolean) {
    this.#all = all
    this.#before = before
    this.#after = after
    this.#raw = raw
  }

  all(before: Desired, after: Desired, lost: Lost): EditedObject[] {
    const numbers = new Map<string | undefined, number>()
    return [
      // The nat of the management network has a section of its own.
      ...after.nodes
        .filter(({ name }) => name !== before.management && name !== after.management)
        .map((node) => (lost.nodes.has(node) ? lostNode(node) : this.#node(node))),
      ...managementEdits(this.#before, this.#after, this.#raw),
      ...after.links.flatMap((link, index) => {
        if (link.isManagement === true) return []
        const number = numbers.get(link.memberOf) ?? 0
        numbers.set(link.memberOf, number + 1)
        if (lost.links.has(link)) return this.#lostLink(link, number, lost)
        const isOfNew = link.memberOf !== undefined && this.#before.segments?.[link.memberOf] === undefined
        return this.#link(link, number, index >= before.links.length, isOfNew)
      }),
    ]
  }

  #node({ name, kind }: DesiredNode): EditedObject {
    const section = isSegmentKind(kind) ? 'segments' : 'nodes'
    const what = isSegmentKind(kind) ? 'segment' : 'node'
    const [before, after] = [this.#before[section]?.[name], this.#after[section]?.[name]]
    if (before === undefined)
      return { do: 'create', what, name, keys: [], edits: [{ path: [section, name], value: after }] }
    const raw = member(this.#raw, section)[name]
    // A template of another kind does not fit, and a node cannot remove keys of its template: it is written without the template.
    const inherited = keysIn(before).filter((key) => !keysIn(after).includes(key) && !keysIn(raw).includes(key))
    if (this.#all && isMap(raw) && 'is' in raw && (before.kind !== after?.kind || inherited.length > 0))
      return {
        do: 'update',
        what,
        name,
        keys: ['is'],
        edits: [{ path: [section, name], value: { ...after, ...('compute' in raw && { compute: raw.compute }) } }],
      }
    const edits = differences(without(before), without(after ?? {}), raw, [section, name])
    return { do: 'update', what, name, keys: [...new Set(edits.map(({ path }) => String(path[2])))], edits }
  }

  #lostLink({ name, memberOf }: DesiredLink, index: number, { nodes }: Lost): EditedObject {
    const path = memberOf === undefined ? ['links', index] : ['segments', memberOf, 'members', index]
    const file = this.#before
    const value =
      memberOf === undefined ? file.links?.[index] : (file.segments?.[memberOf]?.members as unknown[])?.[index]
    const isWithSegment = memberOf !== undefined && isNamed(nodes, memberOf)
    return {
      do: 'delete',
      what: 'link',
      name: name ?? endsIn(value, memberOf).join(' -- '),
      keys: [],
      edits: isWithSegment ? [] : [{ path, value: undefined }],
    }
  }

  #link(link: DesiredLink, index: number, isNew: boolean, isOfNew: boolean): EditedObject {
    const { memberOf } = link
    const path = memberOf === undefined ? ['links', index] : ['segments', memberOf, 'members', index]
    const [before, after] = [this.#before, this.#after].map((file): unknown =>
      memberOf === undefined ? file.links?.[index] : (file.segments?.[memberOf]?.members as unknown[])?.[index],
    )
    const name = link.name ?? endsIn(after, memberOf).join(' -- ')
    // A new segment is written with its members.
    if (isNew) return { do: 'create', what: 'link', name, keys: [], edits: isOfNew ? [] : [{ path, value: after }] }
    const edits = linkEdits(optionsIn(before), optionsIn(after), valueAt(this.#raw, path), path)
    return { do: 'update', what: 'link', name, keys: edits.map((it) => String(it.path.at(-1))), edits }
  }
}

/** The edits of the section `management`. */
function managementEdits(
  { management: before }: LabFileData,
  { management: after }: LabFileData,
  raw: unknown,
): EditedObject[] {
  const what = 'segment'
  const path = ['management']
  const name = String((after ?? before)?.name ?? managementName)
  if (after === undefined)
    return before === undefined ? [] : [{ do: 'delete', what, name, keys: [], edits: [{ path, value: undefined }] }]
  if (before === undefined) return [{ do: 'create', what, name, keys: [], edits: [{ path, value: after }] }]
  const edits = differences(before, after, member(raw, 'management'), path)
  return [{ do: 'update', what, name, keys: edits.map(({ path }) => String(path.at(-1))), edits }]
}

const isNamed = (nodes: ReadonlySet<DesiredNode>, name: string): boolean =>
  [...nodes].some((node) => keyOf(node.name) === keyOf(name))

function lostNode({ name, kind }: DesiredNode): EditedObject {
  const [section, what] = isSegmentKind(kind) ? (['segments', 'segment'] as const) : (['nodes', 'node'] as const)
  return { do: 'delete', what, name, keys: [], edits: [{ path: [section, name], value: undefined }] }
}

/** The edits of checks and tasks: checks of lost nodes and links are removed, and renamed links get their new names. */
export function checkEdits(
  before: Desired,
  { desired, lost }: { readonly desired: Desired; readonly lost: Lost },
): EditedObject[] {
  const { checks, links } = before
  const writtenAnew = ({ name }: DesiredLink) =>
    desired.links.slice(links.length).find((link) => keyOf(link.name ?? '') === keyOf(name ?? ''))?.name
  const names = new Map(
    links.flatMap((link, index) =>
      link.name === undefined
        ? []
        : [[keyOf(link.name), lost.links.has(link) ? writtenAnew(link) : desired.links[index]?.name] as const],
    ),
  )
  /** New names of checks, by the present ones. */
  const checkNames = new Map<string, string | undefined>()
  const edited = checks.flatMap((check, index): EditedObject[] => {
    const path: (string | number)[] = ['checks', index]
    let it: LabCheck = check
    for (; it.check === 'not'; it = it.of) path.push('not')
    const { name } = check
    const words = it.check === 'ping' ? [it.from, it.to] : it.check === 'console' ? [it.on] : []
    const link = it.check === 'link' ? { now: names.get(keyOf(it.link)), before: it.link } : undefined
    if (words.some((word) => isNamed(lost.nodes, word)) || (link !== undefined && link.now === undefined)) {
      checkNames.set(name, undefined)
      return [{ do: 'delete', what: 'check', name, keys: [], edits: [{ path: path.slice(0, 2), value: undefined }] }]
    }
    if (link === undefined || keyOf(link.now ?? '') === keyOf(link.before)) return []
    if (it.check === 'link' && check === it && name === derivedName(it) && link.now !== undefined)
      checkNames.set(name, derivedName({ ...it, link: link.now }))
    return [
      { do: 'update', what: 'check', name, keys: ['link'], edits: [{ path: [...path, 'link'], value: link.now }] },
    ]
  })
  const tasks = taskEdits(before, checkNames)
  return [
    ...edited,
    ...tasks.map(({ name, edits }): EditedObject => ({ do: 'update', what: 'task', name, keys: ['checks'], edits })),
  ]
}

/** The same edits, but a section or list that loses all its entries is removed as a whole. */
export function withoutEmpty(list: readonly EditedObject[], raw: unknown): EditedObject[] {
  const parentOf = ({ path }: LabFileEdit) => JSON.stringify(path.slice(0, -1))
  const parents = new Map<string, number>()
  for (const { edits } of list)
    for (const edit of edits) {
      const isRemoval = edit.value === undefined && edit.key === undefined
      const before = parents.get(parentOf(edit)) ?? 0
      parents.set(parentOf(edit), isRemoval ? before + 1 : Number.NaN)
    }
  const isEmptied = (edit: LabFileEdit) => {
    const path = edit.path.slice(0, -1)
    const value = valueAt(raw, path)
    const size = typeof value === 'object' && value !== null ? Object.keys(value).length : 0
    const canGo = ['links', 'segments', 'checks', 'members'].includes(String(path.at(-1))) && path.length !== 2
    return canGo && parents.get(parentOf(edit)) === size
  }
  return list.map((edited) => ({
    ...edited,
    edits: edited.edits.map((edit) => (isEmptied(edit) ? { path: edit.path.slice(0, -1), value: undefined } : edit)),
  }))
}

/** The keys of a node, and of its labels. */
const keysIn = (fields: unknown): string[] =>
  isMap(fields)
    ? [...Object.keys(fields), ...Object.keys(member(fields, 'labels')).map((label) => `labels.${label}`)]
    : []

/** The keys of a node that are compared one by one: the members of a segment are links. */
const without = ({ members: _, ...fields }: Fields): Fields => fields

export const member = (value: unknown, key: string): Readonly<Record<string, unknown>> => {
  const found = isMap(value) ? value[key] : undefined
  return isMap(found) ? found : {}
}

/** The keys of a link that has some: `[A, B]` and an end alone have none. */
const optionsIn = (value: unknown): Fields => (isMap(value) ? value : {})

/** The ends of a link as the file writes them. */
function endsIn(value: unknown, memberOf: string | undefined): unknown[] {
  if (memberOf !== undefined) return [memberOf, isMap(value) ? value.end : value]
  return (isMap(value) ? value.ends : value) as unknown[]
}

/** The edits from one value to the next. A map that the file itself does not have is written whole, but for labels, which merge. */
function differences(before: Fields, after: Fields, raw: unknown, path: readonly string[]): LabFileEdit[] {
  const isWritten = (key: string) => isMap(raw) && key in raw
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key): LabFileEdit[] => {
    const [old, now] = [before[key], after[key]]
    const inner = [...path, key]
    if (Equal(old, now)) return []
    if (now === undefined) return isWritten(key) ? [{ path: inner, value: undefined }] : []
    const canMerge = isWritten(key) || key === 'labels'
    if (canMerge && isMap(old ?? {}) && isMap(now))
      return differences((old ?? {}) as Fields, now, isMap(raw) ? raw[key] : undefined, inner)
    return [{ path: inner, value: now }]
  })
}

const linkKeys: readonly string[] = [...impairmentKeys, 'there', 'back']

/** The edits of a link. Its impairment is written only when it differs: the same impairment can be written in several ways. */
function linkEdits(before: Fields, after: Fields, raw: unknown, path: readonly (string | number)[]): LabFileEdit[] {
  const impairmentOf = (fields: Fields) =>
    Object.fromEntries(Object.entries(fields).filter(([key]) => linkKeys.includes(key)))
  const isImpaired = !Equal(impairmentOf(before), impairmentOf(after))
  const keys = [...(isImpaired ? linkKeys : []), 'name', 'down', 'capture', ...taggingKeys]
  return keys.flatMap((key): LabFileEdit[] => {
    const isWritten = isMap(raw) && key in raw
    if (!linkKeys.includes(key) && Equal(before[key], after[key])) return []
    if (after[key] === undefined) return isWritten ? [{ path: [...path, key], value: undefined }] : []
    if (isWritten && Equal(raw[key], after[key])) return []
    return [{ path: [...path, key], value: after[key] }]
  })
}
