import { LabFileError } from '../labfile/lab-file-error.ts'
import { namedFiles } from '../labfile/read.ts'
import type { Fields, LabFileData } from '../labfile/text.ts'
import type { Value } from '../labfile/values.ts'
import { withoutVariables } from '../labfile/variables.ts'
import { type Part, valueAt } from './source.ts'

/** A node or a segment of a draft, and where it comes from. */
export interface DraftNode {
  readonly part: Part
  readonly fields: Fields
  readonly origin?: NodeOrigin
}
/** What a node was in the other program. */
export interface NodeOrigin {
  /** Its kind there. */
  readonly from: string
  /** Why a node of that kind cannot run here: the node of the lab file keeps its name, place, ports and links. */
  readonly cannotRun?: string
  /** Where the files come from that it needs. */
  readonly hint?: string
}
export interface DraftSegment extends DraftNode {
  readonly members: DraftLink[]
}
/** A link, or a member of a segment: its value in the lab file. */
export interface DraftLink {
  readonly part: Part
  readonly value: unknown
}
/** A lab file that is being made. What is in it may be removed again. */
export interface DraftFile {
  readonly head: Pick<LabFileData, 'lab' | 'version' | 'about'> & { management?: Fields }
  /** Where the management network comes from. */
  readonly network?: Part | undefined
  readonly nodes: Map<string, DraftNode>
  readonly segments: Map<string, DraftSegment>
  readonly links: DraftLink[]
}

/** Readings after which a draft that still has diagnostics is refused, fewer for a large one. Each one finds some 200 diagnostics. */
const maxReadings = 10
/** Nodes, segments and links that all readings of a draft have together. */
const maxRead = 20_000

/**
 * Reads a draft as a lab file is read, and removes what is wrong: a key of a node, a node without what it needs, a link. Each of these is
 * listed with its reason. 400 for a draft that is wrong even then.
 */
export function removeFaults(draft: DraftFile): void {
  const size = draft.nodes.size + draft.segments.size + draft.links.length
  const most = Math.max(2, Math.min(maxReadings, Math.floor(maxRead / size)))
  for (let reading = 0; reading < most; reading++) {
    const numbered = new NumberedPlaces()
    const { diagnostics } = namedFiles(numbered.document(draft))
    if (diagnostics.length === 0) return
    for (const { line, message, hint } of diagnostics) {
      const place = numbered.places[line]
      if (place === undefined) throw new LabFileError(diagnostics)
      place.part.leaveOut(
        `${place.what === '' ? '' : `${place.what}: `}is not imported: ${message}${hint === undefined ? '' : `; ${hint}`}`,
      )
      place.remove()
    }
  }
  throw new LabFileError(namedFiles(new NumberedPlaces().document(draft)).diagnostics)
}

interface Place {
  readonly part: Part
  /** A key of a node; empty: the node, or the link. */
  readonly what: string
  remove(): void
}

/** Makes the values of a lab file, whose lines are numbers of places in the draft. */
class NumberedPlaces {
  /** The first entry stands for the document, which has no place. */
  readonly places: (Place | undefined)[] = [undefined]

  document({ head, network, nodes, segments, links }: DraftFile): Value {
    const linkValue = (list: DraftLink[], link: DraftLink): Value => {
      const { part, value } = link
      const line = this.#add({ part, what: '', remove: () => removeFrom(list, link) })
      if (value === null || typeof value !== 'object' || Array.isArray(value))
        return partsAt(withoutVariables(value), line)
      const keys = value as Fields
      const own = Object.entries(withoutVariables(value) as Fields).map(([key, it]) => {
        const isEnd = key === 'ends' || key === 'end'
        const at = isEnd ? line : this.#add({ part, what: key, remove: () => delete keys[key] })
        return [key, at, partsAt(it, at)] as const
      })
      return mapAt(line, own)
    }
    const nodeValue = (all: Map<string, DraftNode>, name: string, more: readonly [string, Value][]) => {
      const { part, fields } = all.get(name) as DraftNode
      const line = this.#add({ part, what: '', remove: () => all.delete(name) })
      const remove = (key: string) => () => (key === 'kind' ? all.delete(name) : delete fields[key])
      const own = Object.entries(withoutVariables(fields) as Fields).map(([key, value]): [string, number, Value] => {
        const at = this.#add({ part, what: key, remove: remove(key) })
        return [key, at, partsAt(value, at)]
      })
      return { line, value: mapAt(line, [...own, ...more.map(([key, value]) => [key, line, value] as const)]) }
    }
    const nodeValues = [...nodes.keys()].map((name) => {
      const { line, value } = nodeValue(nodes, name, [])
      return [name, line, value] as const
    })
    const segmentValues = [...segments.keys()].map((name) => {
      const { members } = segments.get(name) as DraftSegment
      const items = members.map((member) => linkValue(members, member))
      const { line, value } = nodeValue(segments, name, [['members', listAt(0, items)]])
      return [name, line, value] as const
    })
    const linkValues = links.map((link) => linkValue(links, link))
    const remove = () => delete head.management
    const lineOf = (key: string) =>
      key === 'management' && network !== undefined ? this.#add({ part: network, what: key, remove }) : 0
    const headValues = Object.entries(withoutVariables(head) as Fields).map(([key, value]) => {
      const line = lineOf(key)
      return [key, line, partsAt(value, line)] as const
    })
    return mapAt(0, [
      ...headValues,
      ['nodes', 0, mapAt(0, nodeValues)],
      ['segments', 0, mapAt(0, segmentValues)],
      ['links', 0, listAt(0, linkValues)],
    ])
  }

  #add(place: Place): number {
    return this.places.push(place) - 1
  }
}

function removeFrom(list: DraftLink[], link: DraftLink): void {
  const index = list.indexOf(link)
  if (index !== -1) list.splice(index, 1)
}

const placed = (line: number) => ({ line, column: 1, path: '' })
const partsAt = (value: unknown, line: number): Value => valueAt(value, placed(line))
const listAt = (line: number, items: readonly Value[]): Value => ({
  at: placed(line),
  range: [0, 0],
  type: 'list',
  items,
  isFlow: false,
})
const mapAt = (line: number, entries: readonly (readonly [key: string, line: number, value: Value])[]): Value => ({
  at: placed(line),
  range: [0, 0],
  type: 'map',
  isFlow: false,
  entries: new Map(entries.map(([key, at, value]) => [key, { key: placed(at), keyRange: [0, 0], value }])),
})
