import type { TObject } from '@sinclair/typebox'

type Fields = Readonly<Record<string, unknown>>

/** A segment of a lab file, as far as its ports are concerned. */
interface SegmentInput {
  /** Settings that the file gives. */
  readonly properties: Fields
  /** Settings that the file gives every port, and single ports by number. */
  readonly everyPort: Fields
  readonly ports: Readonly<Record<number, Fields>>
  /** Settings of the ports that links of the file use, by number. */
  readonly used: ReadonlyMap<number, Fields>
  /** Numbers of the ports that links of others use: these ports stay as they are. */
  readonly foreign: readonly number[]
  /** Settings of the node that is there; undefined: it is made. */
  readonly present: Fields | undefined
  /** Whether the file made it, or makes it. */
  readonly isManaged: boolean
}

/** The settings of a segment that say which ports it has. */
export type PortsFor = (segment: SegmentInput) => Fields

const portList = (node: Fields | undefined): { port_number: number }[] =>
  Array.isArray(node?.ports_mapping) ? (node.ports_mapping as { port_number: number }[]) : []

/** Ports with settings of their own (`ports_mapping`). `least`: the number of ports that a segment without links has. */
export const mappedPortsFor =
  (port: TObject, least: (segment: SegmentInput) => number): PortsFor =>
  (segment) => {
    const { everyPort, ports, used, foreign, present, isManaged } = segment
    const there = new Map(portList(present).map((mapped) => [mapped.port_number, mapped]))
    const isOurs = (number: number) => used.has(number) || ports[number] !== undefined
    // Ports of others stay: those with their links, and in a segment that the file did not make all.
    const others = isManaged ? foreign : [...there.keys()]
    const kept = new Set(others.filter((number) => there.has(number) && !isOurs(number)))
    const first = Array.from({ length: least(segment) }, (_, number) => number)
    const numbers = new Set([...used.keys(), ...Object.keys(ports).map(Number), ...first, ...kept])
    const defaults = defaultsOf(port)
    const list = [...numbers]
      .sort((a, b) => a - b)
      .map((port_number) =>
        kept.has(port_number)
          ? there.get(port_number)
          : {
              name: `Ethernet${port_number}`,
              ...defaults,
              ...everyPort,
              ...ports[port_number],
              ...used.get(port_number),
              port_number,
            },
      )
    return { ports_mapping: list }
  }

const defaultsOf = ({ properties }: TObject): Fields =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([key, schema]) =>
      schema.default === undefined ? [] : [[key, schema.default] as const],
    ),
  )
