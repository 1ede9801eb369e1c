import type { Static } from '@sinclair/typebox'
import { kindOf } from '../model/kinds/node.ts'
import type { LabPort } from '../model/lab/node.ts'
import { portNamed } from '../model/lab/ports.ts'
import type { DesiredEnd, DesiredLink, DesiredNode, SegmentPort } from './desired.ts'
import { type Diagnostics, didYouMean, enough, quoted } from './diagnostics.ts'
import { filtersOf, type GivenImpairment } from './impairment.ts'
import { managedPort } from './management-fields.ts'
import { type Reading, ValuePositions } from './nodes.ts'
import type { Position } from './position.ts'
import {
  type Impairment,
  impairmentKeys,
  type LinkMap,
  type MemberMap,
  sections,
  type Tagging,
  taggingKeys,
} from './schema.ts'
import type { SegmentKind } from './segment-kinds.ts'
import { maxPortsOf, taggedPort } from './segments.ts'
import { at, type ListValue, type MapValue, type Value } from './values.ts'

/** Most ports of all nodes that have links. */
const maxPorts = 300_000

/** What an end of a link may name. */
export interface LinkTarget {
  /** As its key is written. */
  readonly name: string
  /** Absent: it has a fault, and its ports are not known. */
  readonly node?: DesiredNode
  /** Of a node. */
  readonly ports?: () => readonly LabPort[]
}

/** The names that ends may have. */
export const namesOf = (targets: ReadonlyMap<string, Pick<LinkTarget, 'name'>>): string[] =>
  [...targets.values()].map((target) => target.name)

/** An end, with its line. */
interface FoundEnd {
  readonly end: DesiredEnd
  readonly target: LinkTarget
  readonly line: 'ethernet' | 'serial'
  readonly portName: string
}

type LinkKeys = Omit<Static<typeof LinkMap>, 'ends'>

/** Reads the members of segments and the links. */
export class LinkReader {
  readonly #reading: Reading
  /** By name in lower case. */
  readonly #targets: ReadonlyMap<string, LinkTarget>
  readonly #links: DesiredLink[] = []
  /** Where each port is linked, by its name. */
  readonly #taken = new Map<string, Position>()
  readonly #counts = new Map<string, number>()
  readonly #ports = new Map<LinkTarget, readonly LabPort[]>()
  #portCount = 0

  constructor(targets: ReadonlyMap<string, LinkTarget>, reading: Reading) {
    this.#targets = targets
    this.#reading = reading
  }

  get all(): readonly DesiredLink[] {
    return this.#links
  }

  /** The members of a segment; `read` is the value of `members` as its schema gave it. */
  addMembers(segment: DesiredNode, members: readonly (string | MemberMap)[], list: ListValue): void {
    members.forEach((member, index) => {
      const value = list.items[index] as Value
      const map: MemberMap = typeof member === 'string' ? { end: member } : member
      const { end, port, vlan, trunk, qinq, ethertype, ...keys } = map
      const isTagged = taggingKeys.some((key) => map[key] !== undefined)
      const other = this.#end(end, at(value, 'end')?.at ?? value.at)
      if (other === undefined) {
        directions(keys, value, this.#reading.diagnostics)
        return
      }
      const given = Object.fromEntries(
        Object.entries({ vlan, trunk, qinq, ethertype }).filter(([, it]) => it !== undefined),
      )
      const tagging = isTagged ? taggedPort(given as Tagging, value.at, this.#reading.diagnostics) : undefined
      const hasTagging = hasVlans(segment) || hasVlans(other.target.node)
      if (isTagged && !hasTagging)
        this.#reading.diagnostics.add(value.at, `only a switch has VLANs; ${quoted(segment.name)} is a ${segment.kind}`)
      const own = this.#segmentEnd({ name: segment.name, node: segment }, port, value.at)
      if (own !== undefined) this.#add([tagged(other, tagging), tagged(own, tagging)], keys, value, segment.name)
    })
  }

  /** The links of nodes to the management network. */
  addManagement(nat: DesiredNode, nodes: readonly DesiredNode[]): void {
    for (const node of nodes) {
      if (node.management === undefined) continue
      const target = this.#targets.get(node.name.toLowerCase())
      const own = this.#segmentEnd({ name: nat.name, node: nat }, undefined, node.at)
      if (target === undefined || own === undefined) continue
      const end = { node: node.name, adapter_number: 0, port_number: 0, at: node.at }
      const first: FoundEnd = { end, target, line: 'ethernet', portName: '0' }
      const second: FoundEnd = { ...own, end: { ...own.end, port: managedPort(node) } }
      for (const found of [first, second]) this.#countPort(found, true)
      this.#links.push({
        ends: [first.end, second.end],
        link_type: 'ethernet',
        filters_ab: {},
        filters_ba: {},
        suspend: false,
        memberOf: nat.name,
        isManagement: true,
        at: node.at,
        keys: {},
      })
    }
  }

  /** The entries of `links`. */
  addLinks(section: Value | undefined): void {
    const { reader } = this.#reading
    if (section === undefined) return
    if (section.type !== 'list') {
      reader.read(sections.links, section)
      return
    }
    for (const value of section.items) {
      const read = reader.readPartly(sections.links.items, value)
      if (read === undefined) continue
      const { ends, ...keys }: LinkMap = Array.isArray(read) ? { ends: read as [string, string] } : (read as LinkMap)
      const list = Array.isArray(read) ? value : at(value, 'ends')
      const found = ends.map((end, index) =>
        this.#end(end, (list?.type === 'list' ? list.items[index]?.at : undefined) ?? value.at),
      )
      const [a, b] = found
      if (a !== undefined && b !== undefined) this.#add([a, b], keys, value)
      else directions(keys, value, this.#reading.diagnostics)
    }
  }

  #add(ends: readonly [FoundEnd, FoundEnd], given: LinkKeys, value: Value, memberOf?: string): void {
    const { diagnostics } = this.#reading
    const [a, b] = ends
    if (a.line !== b.line)
      diagnostics.add(
        value.at,
        `${a.target.name} ${a.portName} is ${a.line}, ${b.target.name} ${b.portName} is ${b.line}`,
        'both must be the same',
      )
    if (a.target.name === b.target.name && (a.end.port_number === undefined || keyOf(a.end) === keyOf(b.end)))
      diagnostics.add(
        value.at,
        `${quoted(a.target.name)} cannot be linked to ${a.target.node?.segment ? 'itself' : 'its own port'}`,
      )
    for (const found of ends) this.#countPort(found, memberOf === undefined)
    const positions = new ValuePositions(value.type === 'map' ? value : noKeys(value), value.at)
    const { filters_ab, filters_ba } = directions(given, value, diagnostics)
    const { name, down, capture } = given
    this.#links.push({
      ...(name !== undefined && { name }),
      ends: [a.end, b.end],
      link_type: a.line,
      filters_ab,
      filters_ba,
      suspend: down ?? false,
      ...(capture !== undefined && capture !== false && { capture: capture === true ? {} : { file: capture } }),
      ...(memberOf !== undefined && { memberOf }),
      at: value.at,
      keys: positions.all(),
    })
  }

  /** Notes that a port is linked. */
  #countPort({ end, target, portName }: FoundEnd, isLink: boolean): void {
    const { diagnostics } = this.#reading
    const { node } = target
    if (node?.segment !== undefined) {
      const count = (this.#counts.get(node.name) ?? 0) + 1
      this.#counts.set(node.name, count)
      const most = maxPortsOf(node.kind as SegmentKind)
      if (count === most + 1) diagnostics.add(end.at, `a ${node.kind} has at most ${most} ports`)
      if (
        end.port_number !== undefined &&
        !isLink &&
        end.port !== undefined &&
        node.segment.ports[end.port_number] !== undefined
      )
        diagnostics.add(end.at, `${node.name}:${end.port_number} also has its VLAN under ports`, 'write it once')
    }
    if (end.port_number === undefined) return
    const key = keyOf(end)
    const other = this.#taken.get(key)
    if (other !== undefined)
      diagnostics.add(end.at, `${target.name}:${portName} is already linked`, `in line ${other.line}`)
    else this.#taken.set(key, end.at)
  }

  /** The node and port of `NODE:PORT`. */
  #end(text: string, where: Position): FoundEnd | undefined {
    const { diagnostics } = this.#reading
    const colon = text.indexOf(':')
    const [name, word] = colon === -1 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)]
    const target = this.#targets.get(name.toLowerCase())
    if (target === undefined) {
      diagnostics.add(where, `there is no node ${quoted(name)}`, () => didYouMean(name, namesOf(this.#targets)))
      return undefined
    }
    const { node } = target
    if (node === undefined) return undefined
    if (node.segment !== undefined) {
      if (word !== undefined && !/^(?:0|[1-9]\d{0,5})$/.test(word)) {
        diagnostics.add(
          where,
          `${quoted(word)} is not a port of ${node.name}`,
          `ports of a ${node.kind} are numbered, such as ${node.name}:0`,
        )
        return undefined
      }
      return this.#segmentEnd(target, word === undefined ? undefined : Number(word), where)
    }
    const ports = this.#portsOf(target, where)
    const isManaged = node.management !== undefined
    const isData = ({ adapter_number }: LabPort) => !isManaged || adapter_number !== 0
    const port = word === undefined && isManaged ? ports.find(isData) : portOf(ports, word)
    if (port !== undefined && !isData(port)) {
      const message = `${node.name}:${port.name} is its port in the management network`
      diagnostics.add(
        where,
        message,
        `its other ports begin at ${ports.find(isData)?.short_name ?? 'a second adapter'}`,
      )
      return undefined
    }
    if (port === undefined) {
      const names = ports.map((it) => it.short_name)
      const has =
        names.length === 0 ? 'it has none' : `it has ${names.slice(0, 8).join(', ')}${names.length > 8 ? ' …' : ''}`
      diagnostics.add(
        where,
        word === undefined ? `${node.name} has no port 0` : `${node.name} has no port ${quoted(word)}`,
        has,
      )
      return undefined
    }
    const { adapter_number, port_number, link_type, name: portName } = port
    return { end: { node: node.name, adapter_number, port_number, at: where }, target, line: link_type, portName }
  }

  #portsOf(target: LinkTarget, where: Position): readonly LabPort[] {
    const known = this.#ports.get(target)
    if (known !== undefined) return known
    const ports = target.ports?.() ?? []
    this.#ports.set(target, ports)
    this.#portCount += ports.length
    if (this.#portCount > maxPorts) {
      const message = `the nodes with links have more than ${maxPorts} ports in total`
      this.#reading.diagnostics.add(where, message, 'give them fewer adapters')
      throw enough
    }
    return ports
  }

  #segmentEnd(target: LinkTarget, number: number | undefined, where: Position): FoundEnd | undefined {
    const { node } = target
    if (node === undefined) return undefined
    const most = maxPortsOf(node.kind as SegmentKind)
    if (number !== undefined && number >= most) {
      this.#reading.diagnostics.add(where, `a ${node.kind} has no port ${number}`, `ports are 0 to ${most - 1}`)
      return undefined
    }
    const end = { node: node.name, adapter_number: 0, port_number: number, at: where }
    return { end, target, line: 'ethernet', portName: String(number ?? '') }
  }
}

const keyOf = ({ node, adapter_number, port_number }: DesiredEnd): string =>
  `${node.toLowerCase()}/${adapter_number}/${port_number}`

const hasVlans = (node: Pick<DesiredNode, 'kind'> | undefined): boolean =>
  node !== undefined && kindOf(node.kind).hasVlans === true

/** An end at a switch with its tagging. */
function tagged(found: FoundEnd, port: SegmentPort | undefined): FoundEnd {
  if (port === undefined || !hasVlans(found.target.node)) return found
  return { ...found, end: { ...found.end, port } }
}

/** A port by its name, by `adapter/port`, or by the number of its adapter; without a word adapter 0, port 0. */
export function portOf(ports: readonly LabPort[], word: string | undefined): LabPort | undefined {
  if (word === undefined || word === '0') {
    const named = word === undefined ? undefined : portNamed(ports, word)
    return named ?? ports.find(({ adapter_number, port_number }) => adapter_number === 0 && port_number === 0)
  }
  return portNamed(ports, word) ?? (/^\d{1,6}$/.test(word) ? portNamed(ports, `${Number(word)}/0`) : undefined)
}

const noKeys = ({ at, range }: Value): MapValue => ({ type: 'map', entries: new Map(), isFlow: true, at, range })

/** The impairment of both directions. */
function directions(given: LinkKeys, value: Value, diagnostics: Diagnostics) {
  const of = (values: Impairment | undefined, direction: Value | undefined): GivenImpairment => ({
    values: Object.fromEntries(
      Object.entries(values ?? {}).filter(([key]) => (impairmentKeys as readonly string[]).includes(key)),
    ),
    positionOf: (key) => at(direction, key)?.at ?? direction?.at ?? value.at,
    hasFault: (key) => !(key in (values ?? {})) && at(direction, key) !== undefined,
  })
  const plain = of(given, value)
  const way = (key: 'there' | 'back') => filtersOf(plain, given[key] && of(given[key], at(value, key)), diagnostics)
  return { filters_ab: way('there'), filters_ba: way('back') }
}
