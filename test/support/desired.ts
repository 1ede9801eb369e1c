import { createHash } from 'node:crypto'
import fc from 'fast-check'
import type { Desired, DesiredEnd, DesiredLink, DesiredNode } from '../../src/labfile/desired.ts'
import { nodeIdOf, projectIdOf } from '../../src/labfile/ids.ts'
import type { NodeKindName } from '../../src/model/kinds/node.ts'

/** A small lab: nodes `n0`, `n1` ..., switches `s0` ..., and links between them. */
export interface SmallLab {
  readonly nodes: readonly {
    readonly kind: 'pc' | 'machine-emulator'
    readonly ram?: number | undefined
    readonly adapters?: number | undefined
    readonly config?: string | undefined
    readonly position?: [number, number] | undefined
    readonly label?: string | undefined
    readonly after?: boolean | undefined
    readonly console?: number | undefined
    /** Of a pc: its creation alone takes it. */
    readonly mac?: string | undefined
  }[]
  readonly switches: readonly { readonly vlans?: readonly (number | undefined)[] | undefined }[]
  readonly links: readonly {
    readonly from: number
    readonly to: number
    readonly port?: number | undefined
    readonly delay?: number | undefined
    readonly back?: number | undefined
    readonly down?: boolean | undefined
    readonly name?: string | undefined
  }[]
  /** Which of the names are there, so that objects come and go. */
  readonly offset: number
}

const at = { line: 1, column: 1, path: '' }
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

const option = <T>(it: fc.Arbitrary<T>) => fc.option(it, { nil: undefined })

/** Small labs in which links do not share ports. */
export const smallLabs: fc.Arbitrary<SmallLab> = fc.record({
  nodes: fc.array(
    fc.record({
      kind: fc.constantFrom('pc' as const, 'machine-emulator' as const),
      ram: option(fc.constantFrom(128, 256, 512)),
      adapters: option(fc.integer({ min: 1, max: 4 })),
      config: option(fc.constantFrom('ip 10.0.0.1/24', 'ip dhcp', 'set pcname %h')),
      position: option(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 }))),
      label: option(fc.constantFrom('core', 'edge')),
      after: option(fc.boolean()),
      console: option(fc.constantFrom(5100, 5200)),
      mac: option(fc.constantFrom('00:50:79:66:68:0a', '00:50:79:66:68:0b')),
    }),
    { maxLength: 5 },
  ),
  switches: fc.array(fc.record({ vlans: option(fc.array(option(fc.integer({ min: 1, max: 3 })), { maxLength: 3 })) }), {
    maxLength: 2,
  }),
  links: fc.array(
    fc.record({
      from: fc.nat(6),
      to: fc.nat(6),
      port: option(fc.nat(9)),
      delay: option(fc.constantFrom(10, 20)),
      back: option(fc.constantFrom(10, 30)),
      down: option(fc.boolean()),
      name: option(fc.constantFrom('core', 'Edge', 'wan')),
    }),
    { maxLength: 8 },
  ),
  offset: fc.nat(2),
})

/** The normal form of a small lab: links without a free port, and names that are taken, are left out. */
export function desiredOf({ nodes, switches, links, offset }: SmallLab, lab = 'lab'): Desired {
  const plain = {
    ...{ configs: {}, labels: {}, start: true, after: [], at, keys: {}, settings: {}, properties: {} },
  }
  const wanted: DesiredNode[] = [
    ...nodes.map(({ kind, ram, adapters, config, position, label, after, console, mac }, index): DesiredNode => {
      const name = `n${index + offset}`
      return {
        ...plain,
        ...{ name, node_id: nodeIdOf(lab, name), kind: kind as NodeKindName },
        settings: {
          ...(position !== undefined && { x: position[0] * 10, y: position[1] * 10 }),
          ...(console !== undefined && { console: console + index }),
        },
        properties: {
          ...(kind === 'pc' && mac !== undefined && { mac_address: mac }),
          ...(kind === 'machine-emulator' && {
            platform: 'x86_64',
            ...(ram && { ram }),
            ...(adapters && { adapters }),
          }),
        },
        configs:
          kind === 'pc' && config !== undefined ? { startup: { text: config, digest: digestOf(config), at } } : {},
        labels: label === undefined ? {} : { role: label },
        after: after === true && index > 0 ? [`n${offset}`] : [],
      }
    }),
    ...switches.map(({ vlans = [] }, index): DesiredNode => {
      const name = `s${index}`
      const ports = vlans.flatMap((vlan, port) => (vlan === undefined ? [] : [[port, { vlan }] as const]))
      return {
        ...plain,
        ...{ name, node_id: nodeIdOf(lab, name), kind: 'switch' },
        segment: { everyPort: {}, ports: Object.fromEntries(ports) },
      }
    }),
  ]
  const taken = new Set<string>()
  const names = new Set<string>()
  const found = links.flatMap(({ from, to, port, delay, back, down, name }): DesiredLink[] => {
    const ends = [from, to].map((index, side): DesiredEnd | undefined => {
      const node = wanted[index % Math.max(1, wanted.length)]
      if (node === undefined) return undefined
      if (node.segment !== undefined)
        return { node: node.name, adapter_number: 0, port_number: side === 1 ? port : undefined, at }
      const adapters = Number(node.properties.adapters ?? 1)
      const free = Array.from({ length: adapters }, (_, it) => it).find((it) => !taken.has(`${node.name}/${it}`))
      return free === undefined ? undefined : { node: node.name, adapter_number: free, port_number: 0, at }
    })
    const [a, b] = ends
    if (a === undefined || b === undefined || a.node === b.node) return []
    const keys = [a, b].map(({ node, adapter_number, port_number }) => {
      const isSegment = node.startsWith('s')
      return isSegment
        ? port_number === undefined
          ? undefined
          : `${node}:${port_number}`
        : `${node}/${adapter_number}`
    })
    // Two links between the same segments cannot be told from each other without numbers.
    const pair = [a.node, b.node].sort().join(' ')
    if (a.node.startsWith('s') && b.node.startsWith('s')) {
      if (taken.has(pair)) return []
      taken.add(pair)
    }
    if (keys.some((key) => key !== undefined && taken.has(key))) return []
    for (const key of keys) if (key !== undefined) taken.add(key)
    const own = name !== undefined && !names.has(name) ? name : undefined
    if (own !== undefined) names.add(own)
    return [
      {
        ...(own !== undefined && { name: own }),
        ends: [a, b],
        link_type: 'ethernet',
        filters_ab: delay === undefined ? {} : { delay: [delay] },
        filters_ba: back === undefined ? {} : { delay: [back] },
        suspend: down === true,
        at,
        keys: {},
      },
    ]
  })
  return {
    ...{ lab, project_id: projectIdOf(lab), nodes: wanted, links: found, at, checks: [] },
    starting: { give_up: 'stop' },
  }
}
