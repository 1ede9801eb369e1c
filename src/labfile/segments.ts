import { kindOf } from '../model/kinds/node.ts'
import { SwitchPort } from '../model/kinds/switch.ts'
import type { DesiredNode, SegmentPort } from './desired.ts'
import { type Diagnostics, didYouMean, quoted } from './diagnostics.ts'
import { nodeIdOf } from './ids.ts'
import { type Common, common, type Reading, segmentSettings, split, ValuePositions } from './nodes.ts'
import type { Position } from './position.ts'
import { kindOfWord, type MemberMap, segmentSchemas, type Tagging, taggingKeys } from './schema.ts'
import { isSegmentKind, type SegmentKind, segmentKinds } from './segment-kinds.ts'
import { at, type MapValue } from './values.ts'

interface SegmentKeys extends Common {
  device?: string
  ports?: Record<string, Readonly<Record<string, unknown>>>
  members?: (string | MemberMap)[]
}

/** A segment, and its members as the file has them. */
export interface ReadSegment {
  readonly node: DesiredNode
  readonly members: readonly (string | MemberMap)[]
}

/** Reads a segment. Undefined when it has a fault. */
export function readSegment(name: string, map: MapValue, key: Position, reading: Reading): ReadSegment | undefined {
  const { diagnostics, reader } = reading
  const kind = segmentKindIn(map, key, diagnostics)
  const given = kind && reader.readPartly(segmentSchemas[kind], map)
  if (kind === undefined || given === undefined) return undefined
  const keys = new ValuePositions(map, key)
  const { fields, rest } = split(kind, given)
  const { members = [], device, ports = {}, ...own } = rest as SegmentKeys
  const { hasVlans = false, hasHostPorts = false, noun } = kindOf(kind)
  if (hasHostPorts && !['device', 'ports'].some((it) => at(map, it) !== undefined))
    diagnostics.add(
      key,
      `a ${noun} needs device, or ports`,
      'write device: with the name of a device of the host, such as eth1',
    )
  const node: DesiredNode = {
    name,
    node_id: nodeIdOf(reading.lab, name),
    ...common(own, kind, reading),
    settings: segmentSettings(own),
    properties: fields,
    configs: {},
    labels: own.labels ?? {},
    start: true,
    after: [],
    segment: {
      everyPort: device === undefined ? {} : { type: 'ethernet', interface: device },
      ports: Object.fromEntries(
        Object.entries(ports).map(([number, port]) => [
          number,
          hasVlans
            ? {
                ...without(port, taggingKeys),
                ...taggedPort(port, at(at(map, 'ports'), number)?.at ?? key, diagnostics),
              }
            : port,
        ]),
      ),
    },
    at: key,
    keys: keys.all(),
  }
  return { node, members }
}

function segmentKindIn(map: MapValue, key: Position, diagnostics: Diagnostics): SegmentKind | undefined {
  const value = at(map, 'kind')
  const word = value?.type === 'scalar' ? value.source : ''
  if (isSegmentKind(word)) return word
  const expected = `kinds of segments are ${segmentKinds.join(', ')}`
  if (value === undefined) diagnostics.add(key, 'the kind is missing', expected)
  else if (kindOfWord(word) !== undefined) diagnostics.add(value.at, `a ${word} is a node`, 'write it under `nodes`')
  else diagnostics.add(value.at, `unknown kind ${quoted(word)}`, () => didYouMean(word, segmentKinds) ?? expected)
  return undefined
}

const without = (members: Readonly<Record<string, unknown>>, names: readonly string[]) =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))

/** The tagging as members of a port of a switch; those that have their defaults are left out. */
export function taggedPort(given: Tagging, where: Position, diagnostics: Diagnostics): SegmentPort {
  const { vlan, trunk, qinq, ethertype } = given
  if (qinq !== undefined && (trunk === true || vlan !== undefined))
    diagnostics.add(
      where,
      `qinq cannot be combined with ${trunk === true ? 'trunk' : 'vlan'}`,
      'qinq is a trunk inside an outer VLAN',
    )
  if (ethertype !== undefined && ethertype !== '' && qinq === undefined) diagnostics.add(where, 'ethertype needs qinq')
  const port =
    qinq !== undefined
      ? { type: 'qinq', vlan: qinq, ...(ethertype !== undefined && { ethertype }) }
      : { type: trunk === true ? 'dot1q' : 'access', ...(vlan !== undefined && { vlan }) }
  const byDefault = ([name, value]: [string, unknown]) =>
    value === SwitchPort.properties[name as keyof typeof SwitchPort.properties].default
  return Object.fromEntries(Object.entries(port).filter((member) => !byDefault(member)))
}

/** The tagging of a port of a switch, as keys of a lab file. */
export function taggingOf({ type = 'access', vlan = 1, ethertype = '' }: SegmentPort): Tagging {
  if (type === 'qinq')
    return {
      qinq: Number(vlan),
      ...(ethertype !== '' && ethertype !== undefined && { ethertype: String(ethertype) }),
    } as Tagging
  return { ...(type === 'dot1q' && { trunk: true }), ...(vlan !== 1 && { vlan: Number(vlan) }) }
}

/** Most ports of a segment. */
export function maxPortsOf(kind: SegmentKind): number {
  const { ports_mapping, port_count } = kindOf(kind).create.properties
  const most = (ports_mapping ?? port_count) as unknown as { anyOf: readonly [{ maxItems?: number; maximum?: number }] }
  return most.anyOf[0].maxItems ?? most.anyOf[0].maximum ?? 0
}
