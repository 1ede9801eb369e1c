import type { Desired, DesiredLink, DesiredNode, SegmentPort } from '../../labfile/desired.ts'
import { impairmentFields } from '../../labfile/document.ts'
import { linkIdOf, nodeIdOf } from '../../labfile/ids.ts'
import { gridPositions } from '../../labfile/map-grid.ts'
import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { compareText } from '../../lib/text/compare-text.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { isAlwaysOn, kindOf } from '../../model/kinds/node.ts'
import type { LabLinkEnd } from '../../model/lab/link.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind, mapFields } from '../../model/lab/node.ts'
import { portsOf } from '../../model/lab/ports.ts'
import type { LabPlanStep, LabWithheldStep } from '../../model/lab/topology.ts'
import type { Filters } from '../../model/schema/filters.ts'
import type { LinkRecord, NodeLastApplied, NodeRecord, ProjectRecord } from '../lab/document.ts'
import { day0Media, day0MediumIn, isDay0Property } from '../nodes/day0.ts'

/**
 * The planner: what must be done so that a lab is what its file says. Pure: it reads nothing but its arguments, and changes nothing.
 * Applied in full, a second plan of the same file has no step.
 */

/** A lab as it is. */
export interface Actual {
  readonly project: ProjectRecord
  readonly nodes: ReadonlyMap<string, NodeRecord>
  readonly links: ReadonlyMap<string, LinkRecord>
  /** Ids of the nodes that are not stopped. */
  readonly running: ReadonlySet<string>
  /** Ids of those that were started, and have not been seen to be ready. */
  readonly unready?: ReadonlySet<string>
  /** Digests of the configurations of nodes, by id and name. Absent: the configuration could not be read. */
  readonly configs: ReadonlyMap<string, Readonly<Record<string, string>>>
}

/** What a plan may do beside changes that disturb nothing. */
export interface PlanOptions {
  readonly restart?: boolean
  readonly recreate?: boolean
  readonly delete_extra?: boolean
  readonly config_from_file?: boolean
  /** Whether objects that the file names count as made from it from now on, whoever made them. */
  readonly take_over?: boolean
  /** Whether nodes are started, except those with `start: false` in the file. */
  readonly start?: boolean
  /** Ids of computes, by the words of the file: ids and names. */
  readonly computes?: ReadonlyMap<string, string>
}

/** A link as it is wanted, with the numbers of all ports. The nodes are named, as they may not exist yet. */
export interface WantedLink {
  /** The id of a new link; undefined: any. */
  readonly link_id: string | undefined
  readonly name: string | null
  readonly ends: readonly [WantedEnd, WantedEnd]
  readonly filters: Filters
  readonly filters_ab: Filters
  readonly filters_ba: Filters
  readonly suspend: boolean
  readonly capture: { readonly file?: string } | undefined
}
interface WantedEnd {
  readonly node: string
  readonly adapter_number: number
  readonly port_number: number
}

/** The settings of a node that the file decides, complete: they replace those of the record. */
export type WantedSettings = Partial<
  Pick<
    NodeRecord,
    | 'x'
    | 'y'
    | 'symbol'
    | 'labels'
    | 'placement'
    | 'after'
    | 'ready'
    | 'port_name_format'
    | 'custom_adapters'
    | 'console'
  >
> & { readonly console_type?: string }

/** A change of a node. */
export interface PlannedChange {
  readonly name?: string
  readonly settings: WantedSettings
  readonly properties: Readonly<Record<string, unknown>>
  /** Names of the configurations that are taken from the file. */
  readonly configs: readonly string[]
}

/** What may differ between a link and the file. */
type LinkPart = 'impairment' | 'down' | 'up' | 'name' | 'capture'

/** What a step does. */
type PlanTask =
  | { readonly type: 'project'; readonly name: string }
  | {
      readonly type: 'create-node'
      readonly want: DesiredNode
      readonly node_id: string | undefined
      readonly change: PlannedChange
    }
  | { readonly type: 'make-node'; readonly want: DesiredNode; readonly node_id: string; readonly change: PlannedChange }
  | {
      readonly type: 'change-node'
      readonly want: DesiredNode
      readonly node_id: string
      readonly change: PlannedChange
      /** Properties that a withheld step changes. */
      readonly held: readonly string[]
      readonly stops: boolean
    }
  | {
      readonly type: 'recreate-node'
      readonly want: DesiredNode
      readonly node_id: string
      readonly change: PlannedChange
    }
  | { readonly type: 'delete-node'; readonly node_id: string }
  /** `isLate`: the link is made after one of its nodes was recreated. */
  | { readonly type: 'create-link'; readonly link: WantedLink; readonly isLate: boolean }
  | {
      readonly type: 'change-link'
      readonly link_id: string
      readonly link: WantedLink
      /** Whether the ends of the link that is there are in the other order. */
      readonly isTurned: boolean
      readonly parts: readonly LinkPart[]
    }
  | { readonly type: 'delete-link'; readonly link_id: string }
  /** Stops a capture that a lab file started. `next`: the one that takes its place. */
  | { readonly type: 'end-capture'; readonly link_id: string; readonly next: WantedLink['capture'] }
  | { readonly type: 'start-node'; readonly name: string }

/** A step with what it does. */
export interface PlannedStep extends LabPlanStep {
  readonly task: PlanTask
}

/** Something that is there and that the file does not decide. */
interface Extra {
  readonly what: 'node' | 'segment' | 'link' | 'config'
  readonly name: string
  readonly because?: string
}

/** What must be done, in the order in which it is done. */
export interface Plan {
  readonly steps: readonly PlannedStep[]
  /** Steps that need a flag. */
  readonly withheld: readonly LabWithheldStep[]
  readonly extra: readonly Extra[]
  /** Nodes that need no step, but a record of what the file says of them, by id. */
  readonly marks: ReadonlyMap<string, DesiredNode>
  /** Links that need no step, and now count as made from the file. */
  readonly linksToMark: readonly string[]
  /** For each node of the file the node of the lab that it describes. */
  readonly found: ReadonlyMap<DesiredNode, NodeRecord>
}

type Flag = LabWithheldStep['flag']

/** A node of the file, and the node of the lab that it describes, if there is one. */
interface Pair {
  readonly want: DesiredNode
  readonly have: NodeRecord | undefined
  /** Whether the file made the node: then absent keys mean defaults, and the node is deleted when it leaves the file. */
  readonly isMade: boolean
  state: 'there' | 'new' | 'anew' | 'outdated'
  /** The flag that a withheld change of the node needs. Links to ports that the change would add need it, too. */
  flag: Flag | undefined
  /** The node after the changes that are not withheld; undefined: as it is. */
  next: NodeRecord | undefined
}

/** A link of the file, and the link of the lab that it describes, if there is one. */
interface Resolved {
  readonly link: WantedLink
  readonly want: DesiredLink
  readonly have: LinkRecord | undefined
}

/** Order of the steps. Steps that destroy a disk or end a capture come after all steps that do not depend on them. */
const phases = {
  ...{ project: 0, 'delete-link': 1, 'delete-segment': 2, 'create-node': 3, 'make-node': 3, 'change-node': 4 },
  ...{ 'create-link': 5, 'change-link': 5, 'delete-node': 6, 'recreate-node': 7, 'late-link': 8 },
  ...{ 'end-capture': 9, 'start-node': 10 },
} as const

/** The phase of a step. Steps of one phase do not depend on each other. */
export const phaseOf = ({ task, what }: PlannedStep): number =>
  task.type === 'delete-node' && what === 'segment'
    ? phases['delete-segment']
    : task.type === 'create-link' && task.isLate
      ? phases['late-link']
      : phases[task.type]

/** The id of the compute that the file names for a node; undefined: it names none. */
export const wantedCompute = (
  { compute_id }: DesiredNode,
  { computes }: Pick<PlanOptions, 'computes'>,
): string | undefined => (compute_id ? (computes?.get(compute_id) ?? compute_id) : undefined)

/** Makes the plan. */
export function planOf(desired: Desired, actual: Actual, options: PlanOptions = {}): Plan {
  return new Planner(desired, actual, options).plan()
}

class Planner {
  readonly #desired: Desired
  readonly #actual: Actual
  readonly #options: PlanOptions
  readonly #steps: PlannedStep[] = []
  readonly #withheld: LabWithheldStep[] = []
  readonly #extra: Extra[] = []
  readonly #marks = new Map<string, DesiredNode>()
  readonly #linksToMark: string[] = []
  /** Keys of the names that the file gives links. */
  readonly #linkNames: ReadonlySet<string>
  readonly #found = new Map<DesiredNode, NodeRecord>()
  readonly #pairs = new Map<string, Pair>()
  /** Pairs by the ids of their nodes. */
  readonly #byId = new Map<string, Pair>()
  /** Links by the ids of their nodes. */
  readonly #linksOf = new Map<string, LinkRecord[]>()
  /** The link at a port. */
  readonly #atPort = new Map<string, LinkRecord>()
  /** Settings of the ports of segments, by the key of the name and by number. */
  readonly #ports = new Map<string, Map<number, SegmentPort>>()
  /** Names of nodes that a step stops. */
  readonly #stopped = new Set<string>()

  constructor(desired: Desired, actual: Actual, options: PlanOptions) {
    this.#desired = desired
    this.#actual = actual
    this.#options = options
    this.#linkNames = new Set(desired.links.flatMap(({ name }) => (name === undefined ? [] : [nameKey(name)])))
    for (const link of actual.links.values()) {
      for (const end of link.nodes) {
        this.#atPort.set(portKey(end), link)
        const list = this.#linksOf.get(end.node_id)
        if (list === undefined) this.#linksOf.set(end.node_id, [link])
        else list.push(link)
      }
    }
  }

  plan(): Plan {
    const { project } = this.#actual
    if (project.name !== this.#desired.lab)
      this.#add(
        { do: 'update', what: 'project', name: this.#desired.lab, how: 'live', because: `its name is ${project.name}` },
        { type: 'project', name: this.#desired.lab },
      )
    this.#pair()
    const resolved = this.#resolve()
    const positions = gridPositions(this.#desired)
    for (const pair of this.#pairs.values()) this.#planNode(pair, positions)
    this.#planLinks(resolved)
    this.#planRemovals(resolved)
    this.#planStarts()
    return {
      steps: this.#steps.sort((a, b) => phaseOf(a) - phaseOf(b)),
      withheld: this.#withheld,
      extra: this.#extra,
      marks: this.#marks,
      linksToMark: this.#linksToMark,
      found: this.#found,
    }
  }

  #add(step: LabPlanStep, task: PlanTask): void {
    this.#steps.push({ ...step, task })
  }

  /** Adds a step if its flag is given; otherwise withholds it. */
  #addIf(flag: Flag | undefined, step: LabPlanStep, task: PlanTask): boolean {
    const isAllowed = flag === undefined || this.#options[flag] === true
    if (isAllowed) this.#add(step, task)
    else this.#withheld.push({ ...step, flag })
    return isAllowed
  }

  /** Finds the nodes of the file: by name, by the earlier name (`was`), then a node that was renamed in the lab by its id, which is derived from its first name. */
  #pair(): void {
    const byName = new Map([...this.#actual.nodes.values()].map((node) => [nameKey(node.name), node]))
    const found = this.#found
    const taken = new Set<string>()
    const match = (want: DesiredNode, node: NodeRecord | undefined) => {
      if (node === undefined || taken.has(node.node_id) || found.has(want)) return
      found.set(want, node)
      taken.add(node.node_id)
    }
    const { nodes } = this.#desired
    for (const want of nodes) match(want, byName.get(nameKey(want.name)))
    for (const want of nodes) if (want.was !== undefined) match(want, byName.get(nameKey(want.was)))
    for (const want of nodes)
      for (const id of [want.node_id, ...(want.was === undefined ? [] : [nodeIdOf(this.#desired.lab, want.was)])]) {
        const node = this.#actual.nodes.get(id)
        if (node?.file?.managed === true) match(want, node)
      }
    for (const want of nodes) {
      const have = found.get(want)
      const isMade = have === undefined || have.file?.managed === true || this.#options.take_over === true
      const state = have === undefined ? 'new' : 'there'
      const pair: Pair = { want, have, isMade, state, flag: undefined, next: undefined }
      this.#pairs.set(nameKey(want.name), pair)
      if (have !== undefined) this.#byId.set(have.node_id, pair)
    }
  }

  /** Finds the links of the file, and chooses the ports of segments that the file leaves open. */
  #resolve(): Resolved[] {
    const byName = new Map<string, LinkRecord>()
    for (const link of this.#actual.links.values()) if (link.name != null) byName.set(nameKey(link.name), link)
    const matched = new Set<LinkRecord>()
    const wants = this.#desired.links.map((want) => ({
      want,
      have: undefined as LinkRecord | undefined,
      ports: [undefined, undefined] as [number | undefined, number | undefined],
    }))
    const numbered = new Set(
      this.#desired.links.flatMap(({ ends }) =>
        ends.flatMap(({ node, port_number }) => (port_number === undefined ? [] : [`${nameKey(node)}/${port_number}`])),
      ),
    )
    const found = (it: (typeof wants)[number], link: LinkRecord | undefined): boolean => {
      if (link === undefined || matched.has(link)) return false
      const ports = this.#fits(it.want, link)
      if (ports === undefined) return false
      // Another link asks for that port by its number.
      if (
        it.want.ends.some(
          ({ node, port_number }, index) =>
            port_number === undefined && numbered.has(`${nameKey(node)}/${ports[index as 0 | 1]}`),
        )
      )
        return false
      matched.add(link)
      it.have = link
      it.ports = ports
      return true
    }
    // First the links whose ends are given in full, so that they are not taken for others.
    for (const isOpen of [false, true])
      for (const it of wants) {
        if (it.want.ends.some(({ port_number }) => port_number === undefined) !== isOpen) continue
        if (it.want.name !== undefined && found(it, byName.get(nameKey(it.want.name)))) continue
        for (const link of this.#candidates(it.want)) if (found(it, link)) break
      }
    const used = new Map<string, Set<number>>()
    const use = (node: string, port: number | undefined) => {
      if (port === undefined) return
      const key = nameKey(node)
      used.set(key, (used.get(key) ?? new Set()).add(port))
    }
    for (const { want, ports } of wants)
      for (const [index, end] of want.ends.entries()) use(end.node, end.port_number ?? ports[index as 0 | 1])
    // Ports of links that stay, though the file does not have them.
    for (const link of this.#actual.links.values()) {
      if (matched.has(link) || isLinkMade(link)) continue
      for (const { node_id, port_number } of link.nodes) {
        const pair = this.#byId.get(node_id)
        if (pair?.want.segment !== undefined) use(pair.want.name, port_number)
      }
    }
    const lowest = new Map<string, number>()
    return wants.map(({ want, have, ports }) => {
      const ends = want.ends.map((end, index) => {
        let port = end.port_number ?? ports[index as 0 | 1]
        if (port === undefined) {
          const key = nameKey(end.node)
          const taken = used.get(key) ?? new Set<number>()
          port = lowest.get(key) ?? 0
          while (taken.has(port)) port += 1
          lowest.set(key, port)
          use(end.node, port)
        }
        if (this.#pairs.get(nameKey(end.node))?.want.segment !== undefined) this.#recordPort(end.node, port, end.port)
        return { node: end.node, adapter_number: end.adapter_number, port_number: port }
      }) as [WantedEnd, WantedEnd]
      const isSame = JSON.stringify(want.filters_ab) === JSON.stringify(want.filters_ba)
      const link: WantedLink = {
        link_id: this.#freeLinkId(linkIdOf(this.#desired.lab, want.name ?? ends), matched),
        name: want.name ?? null,
        ends,
        filters: isSame ? want.filters_ab : {},
        filters_ab: isSame ? {} : want.filters_ab,
        filters_ba: isSame ? {} : want.filters_ba,
        suspend: want.suspend,
        capture: want.capture,
      }
      return { link, want, have }
    })
  }

  /** The id; undefined when a link that stays has it. */
  #freeLinkId(id: string, matched: ReadonlySet<LinkRecord>): string | undefined {
    const other = this.#actual.links.get(id)
    return other === undefined || (!matched.has(other) && isLinkMade(other)) ? id : undefined
  }

  #recordPort(node: string, port: number, settings: SegmentPort | undefined): void {
    const key = nameKey(node)
    const ports = this.#ports.get(key) ?? new Map<number, SegmentPort>()
    this.#ports.set(key, ports.set(port, { ...ports.get(port), ...settings }))
  }

  /** The ports of a link, in the order of the wanted ends, when it is between these ends. */
  #fits(want: DesiredLink, link: LinkRecord): [number, number] | undefined {
    const isAt = (end: DesiredLink['ends'][number], at: LabLinkEnd) =>
      this.#pairs.get(nameKey(end.node))?.have?.node_id === at.node_id &&
      end.adapter_number === at.adapter_number &&
      (end.port_number ?? at.port_number) === at.port_number
    const [a, b] = link.nodes as [LabLinkEnd, LabLinkEnd]
    const [first, second] = want.ends
    if (isAt(first, a) && isAt(second, b)) return [a.port_number, b.port_number]
    if (isAt(first, b) && isAt(second, a)) return [b.port_number, a.port_number]
    return undefined
  }

  /** Links that may be the wanted one: at an end with a known port, else all of a segment. */
  #candidates(want: DesiredLink): readonly LinkRecord[] {
    const known = want.ends.find(({ port_number }) => port_number !== undefined)
    const end = known ?? want.ends[0]
    const node_id = this.#pairs.get(nameKey(end.node))?.have?.node_id
    if (node_id === undefined) return []
    if (known?.port_number === undefined) return this.#linksOf.get(node_id) ?? []
    const link = this.#atPort.get(
      portKey({ node_id, adapter_number: known.adapter_number, port_number: known.port_number }),
    )
    return link === undefined ? [] : [link]
  }

  #planNode(pair: Pair, positions: ReadonlyMap<string, { x: number; y: number }>): void {
    const { want, have, isMade } = pair
    const what = want.segment === undefined ? 'node' : 'segment'
    const { name } = want
    const position = positions.get(nameKey(name))
    const ports = this.#segmentPorts(pair)
    const all: PlannedChange = {
      settings: {
        ...settingsOf(want),
        ...(want.settings.x === undefined && want.settings.y === undefined && position),
      },
      properties: { ...want.properties, ...ports },
      configs: Object.keys(want.configs),
    }
    if (have === undefined) {
      const node_id = this.#actual.nodes.has(want.node_id) ? undefined : want.node_id
      this.#add({ do: 'create', what, name, how: 'live' }, { type: 'create-node', want, node_id, change: all })
      return
    }
    const { node_id } = have
    const anew = this.#recreateReason(pair)
    if (anew !== undefined) {
      const step = { do: 'update', what, name, how: 'recreate', because: anew.because } as const
      if (this.#addIf('recreate', step, { type: 'recreate-node', want, node_id, change: all })) {
        pair.state = 'anew'
        if (this.#actual.running.has(node_id)) this.#stopped.add(name)
        return
      }
      pair.state = 'outdated'
      pair.flag = 'recreate'
      // Settings of another kind are not settings of this node.
      if (have.node_type !== want.kind || have.creationError !== undefined) return
    }
    const medium = want.day0 && day0Media[want.day0.medium]
    const made = medium === undefined ? {} : { [medium.property]: medium.file }
    const complete = { ...all, properties: { ...all.properties, ...made } }
    const { live, restarting } = this.#differences(pair, complete, anew?.keys ?? [])
    const isRunning = this.#actual.running.has(node_id)
    const configs = this.#configs(pair, isRunning ? restarting : live)
    const both = {
      names: [...live.names, ...restarting.names],
      change: merged(live.change, restarting.change),
    }
    if (have.creationError !== undefined) {
      const step = { do: 'create', what, name, how: 'live', because: 'its compute could not make it' } as const
      this.#add(step, { type: 'make-node', want, node_id, change: both.change })
      return
    }
    const needsStop = isRunning && restarting.names.length > 0
    const isHeld = needsStop && this.#options.restart !== true
    if (isHeld) {
      const because = restarting.names.join(', ')
      this.#withheld.push({ do: 'update', what, name, how: 'restart', because, flag: 'restart' })
      pair.state = 'outdated'
      pair.flag = 'restart'
    }
    const { names, change } = isHeld ? live : both
    const held = [...(anew?.keys ?? []), ...(isHeld ? Object.keys(restarting.change.properties) : [])]
    pair.next = { ...have, properties: { ...have.properties, ...change.properties } }
    if (names.length > 0) {
      const how = needsStop && !isHeld ? 'restart' : 'live'
      const step = { do: 'update', what, name, how, because: names.join(', ') } as const
      this.#add(step, { type: 'change-node', want, node_id, change, held, stops: how === 'restart' })
      if (how === 'restart') this.#stopped.add(name)
    } else if (pair.state === 'there' && (isMade || configs)) this.#marks.set(node_id, want)
  }

  /** Why a node must be recreated, and the properties that only a new node takes; undefined: it need not be. */
  #recreateReason({ want, have, isMade }: Pair): { because: string; keys: readonly string[] } | undefined {
    if (have === undefined) return undefined
    if (have.node_type !== want.kind)
      return { because: `its kind is ${have.node_type}, ${want.kind} in the file`, keys: [] }
    const { create, update } = kindOf(want.kind)
    const keys = Object.entries(isMade ? want.properties : {}).flatMap(([key, value]) =>
      key in create.properties && !(key in update.properties) && !isShown(have, key, value) ? [key] : [],
    )
    const hasOtherCd = have.file?.managed === true && have.file.day0 !== day0In(want, have)
    const words = [...keys, ...(hasOtherCd ? ['day0'] : [])]
    const compute = wantedCompute(want, this.#options)
    const reasons = [
      ...(compute !== undefined && compute !== have.compute_id ? [`it is on the compute ${have.compute_id}`] : []),
      ...(words.length > 0 ? [`${words.join(', ')} ${words.length > 1 ? 'are' : 'is'} read at creation only`] : []),
    ]
    if (reasons.length === 0) return undefined
    return { because: reasons.join('; '), keys: [...keys, ...(hasOtherCd ? day0Keys(want, have) : [])] }
  }

  /** The ports of a segment, as members of its properties. Those of links that others made stay as they are. */
  #segmentPorts({ want, have, isMade }: Pair): Record<string, unknown> {
    const { segment, kind, properties } = want
    if (segment === undefined) return {}
    const numbers = new Map(this.#ports.get(nameKey(want.name)))
    if (kind === 'nat') {
      if ('port_count' in properties) return {}
      // In steps of eight, as a nat must be stopped to get more.
      const most = Math.max(0, ...numbers.keys(), ...this.#foreignPorts(have))
      const present = isMade ? 0 : Number(have?.properties.port_count ?? 0)
      return { port_count: Math.max(present, Math.min(64, 8 * Math.ceil((most + 1) / 8))) }
    }
    for (const port of Object.keys(segment.ports)) if (!numbers.has(Number(port))) numbers.set(Number(port), {})
    const count = kind !== 'cloud' ? defaultPorts : Object.keys(segment.everyPort).length > 0 ? 1 : 0
    for (let port = 0; port < count; port++) if (!numbers.has(port)) numbers.set(port, {})
    const there = new Map(portList(have).map((port) => [port.port_number, port]))
    // Ports of others stay: those with their links, and in a segment that the file did not make all.
    const others = isMade ? this.#foreignPorts(have) : [...there.keys()]
    const isOurs = (port: number) => this.#ports.get(nameKey(want.name))?.has(port) || segment.ports[port] !== undefined
    const kept = new Set(others.filter((port) => there.has(port) && !isOurs(port)))
    for (const port of kept) numbers.set(port, {})
    const list = [...numbers]
      .sort(([a], [b]) => a - b)
      .map(([port_number, settings]) => {
        const present = there.get(port_number)
        if (present !== undefined && kept.has(port_number)) return present
        return {
          ...portDefaults(kind, port_number),
          ...segment.everyPort,
          ...segment.ports[port_number],
          ...settings,
          port_number,
        }
      })
    return { ports_mapping: list }
  }

  /** Numbers of the ports of a segment that links of others use. */
  #foreignPorts(have: NodeRecord | undefined): number[] {
    if (have === undefined) return []
    return (this.#linksOf.get(have.node_id) ?? [])
      .filter((link) => !isLinkMade(link))
      .flatMap(({ nodes }) =>
        nodes.filter(({ node_id }) => node_id === have.node_id).map(({ port_number }) => port_number),
      )
  }

  /** What differs between a node and the file: what changes at once, and what needs a restart of a running node. */
  #differences(
    { want, have, isMade }: Pair,
    all: PlannedChange,
    held: readonly string[],
  ): { live: Differences; restarting: Differences } {
    const record = have as NodeRecord
    const live = new DifferenceList()
    const restarting = new DifferenceList()
    const descriptor: KindDescriptor = kindOf(want.kind)
    const isFree = (key: string) => isAlwaysOn(want.kind) || descriptor.liveFields?.includes(key) === true
    if (record.name !== want.name) (descriptor.name === 'hypervisor' ? restarting : live).rename(record.name, want.name)
    const lastApplied = record.file
    for (const key of settingKeys) {
      const given = all.settings[key]
      const isGiven =
        given !== undefined &&
        (!(key === 'x' || key === 'y') || want.settings[key] !== undefined || lastApplied?.keys.includes(key) === true)
      const isReset =
        isMade &&
        !isGiven &&
        key !== 'x' &&
        key !== 'y' &&
        key !== 'console' &&
        lastApplied?.computeDefaults?.includes(key) !== true
      if (!isGiven && !isReset) continue
      const value = isGiven ? given : settingDefault(want.kind, key)
      const now = key === 'labels' || key === 'placement' ? (record[key] ?? {}) : record[key]
      if (same(now, value) || value === undefined) continue
      const needsStop = key === 'custom_adapters' || key === 'console_type'
      const place = key === 'x' || key === 'y'
      const [from, to] = place ? [placeOf(record), placeOf({ ...record, ...all.settings })] : [now, value]
      const difference = differenceOf(place ? 'at' : key, from, to)
      ;(needsStop && !isAlwaysOn(want.kind) ? restarting : live).setting(key, value, difference)
    }
    for (const [key, value] of Object.entries(all.properties)) {
      if (held.includes(key) || isShown(record, key, value)) continue
      ;(isFree(key) ? live : restarting).property(key, value, record.properties[key])
    }
    if (isMade)
      for (const [key, value] of defaultsOf(want.kind, record)) {
        if (held.includes(key) || key in all.properties || lastApplied?.computeDefaults?.includes(key)) continue
        if (same(record.properties[key], value)) continue
        ;(isFree(key) ? live : restarting).property(key, value, record.properties[key])
      }
    return { live, restarting }
  }

  /** Adds the configurations that are taken from the file, withholds conflicts, and reports those that changed on the node only. */
  #configs({ want, have, isMade }: Pair, into: DifferenceList | Differences): boolean {
    const record = have as NodeRecord
    const bases = record.file?.configs ?? {}
    const now = this.#actual.configs.get(record.node_id) ?? {}
    const { configs = {} }: KindDescriptor = kindOf(want.kind)
    for (const [name, access] of Object.entries(configs)) {
      const config = want.configs[name]
      const [base, digest] = [bases[name], now[name]]
      const word = name === 'startup' ? 'config' : `${name} config`
      const isNodeChanged = digest !== undefined && digest !== base?.node
      if (config === undefined) {
        // The configuration has left the file: it is removed from the node, if the kind can do without.
        if (isMade && base !== undefined && !isNodeChanged && access.keepsEmpty === true && digest !== emptyDigest)
          (into as DifferenceList).property(access.field, '', undefined, word)
        continue
      }
      if (digest === config.digest) continue
      if (base?.file === config.digest) {
        if (isNodeChanged)
          this.#extra.push({
            what: 'config',
            name: want.name,
            because: `its ${word} was changed on the node; patchbay save writes the change into the file`,
          })
        continue
      }
      const isEmpty = digest === undefined || digest === emptyDigest
      if (isNodeChanged && !isEmpty && this.#options.config_from_file !== true) {
        const because = `its ${word} differs in the file and on the node`
        this.#withheld.push({
          do: 'update',
          what: 'node',
          name: want.name,
          how: this.#actual.running.has(record.node_id) ? 'restart' : 'live',
          because,
          flag: 'config_from_file',
        })
        continue
      }
      ;(into as DifferenceList).config(name, word)
    }
    return Object.keys(want.configs).length > 0
  }

  #planLinks(resolved: readonly Resolved[]): void {
    for (const { link, have, want } of resolved) {
      const name = linkName(link)
      const what = 'link'
      if (have !== undefined) {
        const isTurned = this.#isTurned(link, have)
        const parts = this.#linkDifferences(link, have, want, isTurned)
        if (parts.length > 0)
          this.#add(
            { do: 'update', what, name, how: 'live', because: this.#linkDifferenceText(parts, link, have, isTurned) },
            { type: 'change-link', link_id: have.link_id, link, isTurned, parts },
          )
        else if (have.file === undefined && this.#options.take_over === true) this.#linksToMark.push(have.link_id)
        const file = want.capture?.file
        if (want.capture === undefined) this.#endCapture(have, 'no capture')
        else if (file !== undefined && file !== captureName(have.capture))
          this.#endCapture(have, `capture in ${file}`, want.capture)
        continue
      }
      const pairs = link.ends.map(({ node }) => this.#pairs.get(nameKey(node)) as Pair)
      // A port that a withheld change would make.
      const lacking = pairs.find(
        ({ state, next, have }, index) =>
          state === 'outdated' && !hasPort((next ?? have) as NodeRecord, link.ends[index] as WantedEnd),
      )
      if (lacking?.flag !== undefined) {
        const because = `${lacking.want.name} lacks the port until it is changed`
        this.#withheld.push({ do: 'create', what, name, how: 'live', because, flag: lacking.flag })
        continue
      }
      const blocking = pairs.flatMap(({ have: node }, index) => {
        const end = link.ends[index] as WantedEnd
        const other = node && this.#atPort.get(portKey({ ...end, node_id: node.node_id }))
        return other !== undefined && !isLinkMade(other) ? [other] : []
      })
      if (blocking.length > 0 && this.#options.delete_extra !== true) {
        const because = 'a link that is not of the file is at its port'
        this.#withheld.push({ do: 'create', what, name, how: 'live', because, flag: 'delete_extra' })
        continue
      }
      for (const other of blocking) this.#deleteLink(other, 'it is at a port of a link of the file')
      const isLate = pairs.some(({ state }) => state === 'anew')
      this.#add({ do: 'create', what, name, how: 'live' }, { type: 'create-link', link, isLate })
    }
  }

  readonly #deletedLinks = new Set<string>()
  #deleteLink(link: LinkRecord, because?: string): void {
    if (this.#deletedLinks.has(link.link_id)) return
    this.#deletedLinks.add(link.link_id)
    this.#add(
      {
        do: 'delete',
        what: 'link',
        name: this.#nameOfLink(link),
        how: 'live',
        ...(because !== undefined && { because }),
      },
      { type: 'delete-link', link_id: link.link_id },
    )
  }

  /** Ends the capture of a link that stays. One that a lab file did not start is left alone. */
  #endCapture({ link_id, capture, ...link }: LinkRecord, because: string, next?: WantedLink['capture']): void {
    if (capture?.managed !== true) return
    const name = this.#nameOfLink(link)
    this.#add({ do: 'update', what: 'link', name, how: 'live', because }, { type: 'end-capture', link_id, next })
  }

  #isTurned({ ends: [first] }: WantedLink, { nodes: [a] }: LinkRecord): boolean {
    const node_id = this.#pairs.get(nameKey(first.node))?.have?.node_id as string
    return a !== undefined && portKey({ ...first, node_id }) !== portKey(a)
  }

  #linkDifferences(link: WantedLink, have: LinkRecord, want: DesiredLink, isTurned: boolean): LinkPart[] {
    const isMade = isLinkMade(have) || this.#options.take_over === true
    const there = [allFilters(have.filters, have.filters_ab), allFilters(have.filters, have.filters_ba)]
    if (isTurned) there.reverse()
    const isGiven = isMade || Object.keys(want.filters_ab).length + Object.keys(want.filters_ba).length > 0
    const names: LinkPart[] = []
    if (isGiven && !(same(there[0], want.filters_ab) && same(there[1], want.filters_ba))) names.push('impairment')
    if (link.suspend !== have.suspend && (isMade || link.suspend)) names.push(link.suspend ? 'down' : 'up')
    const hasOther = have.name != null && this.#linkNames.has(nameKey(have.name))
    if (link.name !== (have.name ?? null) && (isMade || link.name !== null || hasOther)) names.push('name')
    if (want.capture !== undefined && have.capture === null) names.push('capture')
    return names
  }

  /** The differences of a link, in the words of the file. */
  #linkDifferenceText(parts: readonly LinkPart[], link: WantedLink, have: LinkRecord, isTurned: boolean): string {
    const there = [allFilters(have.filters, have.filters_ab), allFilters(have.filters, have.filters_ba)] as const
    const [ab, ba] = isTurned ? [there[1], there[0]] : there
    const [from, to] = [
      impairmentFields(ab, ba),
      impairmentFields(allFilters(link.filters, link.filters_ab), allFilters(link.filters, link.filters_ba)),
    ]
    const changed = [...new Set([...Object.keys(from), ...Object.keys(to)])].filter((key) => !same(from[key], to[key]))
    const texts = parts.map((part) => {
      if (part === 'impairment' && changed.length > 0)
        return `impairment: ${changed.map((key) => differenceOf(key, from[key], to[key])).join(', ')}`
      return part === 'name' ? differenceOf('name', have.name, link.name) : part
    })
    return texts.join(', ')
  }

  #nameOfLink(link: Pick<LinkRecord, 'name' | 'nodes'>): string {
    if (link.name != null) return link.name
    const ends = link.nodes.map((end) => {
      const node = this.#actual.nodes.get(end.node_id)
      return `${node?.name ?? end.node_id}:${end.adapter_number}/${end.port_number}`
    })
    return ends.join(' -- ')
  }

  /** What is there and not in the file. */
  #planRemovals(resolved: readonly Resolved[]): void {
    const kept = new Set(resolved.map(({ have }) => have?.link_id))
    for (const link of this.#actual.links.values()) {
      if (kept.has(link.link_id)) continue
      if (isLinkMade(link)) this.#deleteLink(link, 'it has left the file')
      else if (!this.#deletedLinks.has(link.link_id)) {
        this.#extra.push({ what: 'link', name: this.#nameOfLink(link) })
        this.#endCapture(link, 'it has left the file')
      }
    }
    for (const node of this.#actual.nodes.values()) {
      if (this.#byId.has(node.node_id)) continue
      const isSegment = isSegmentKind(node.node_type)
      const what = isSegment ? 'segment' : 'node'
      if (node.file?.managed !== true) {
        this.#extra.push({ what, name: node.name })
        continue
      }
      if (node.locked) {
        this.#extra.push({ what, name: node.name, because: 'it has left the file, and is locked' })
        continue
      }
      const step = { do: 'delete', what, name: node.name, how: 'live', because: 'it has left the file' } as const
      this.#addIf(isSegment ? undefined : 'delete_extra', step, { type: 'delete-node', node_id: node.node_id })
    }
  }

  #planStarts(): void {
    for (const { want, have } of this.#pairs.values()) {
      const isStopped = this.#stopped.has(want.name)
      const isRunning = have !== undefined && this.#actual.running.has(have.node_id)
      // A start waits until the node is ready, also before nodes that start after it, and `up` fails when it does not become ready.
      const isUnready = isRunning && want.ready !== undefined && this.#actual.unready?.has(have.node_id) === true
      const isWanted = this.#options.start === true && want.start && (!isRunning || isUnready)
      if (!isStopped && !isWanted) continue
      // Such a node runs as soon as it is created.
      if (have === undefined && isAlwaysOn(want.kind)) continue
      const what = want.segment === undefined ? 'node' : 'segment'
      this.#add(
        {
          do: 'start',
          what,
          name: want.name,
          how: 'live',
          ...(isStopped ? { because: 'it was stopped for its change' } : isUnready && { because: 'it was not ready' }),
        },
        { type: 'start-node', name: want.name },
      )
    }
  }
}

/** Changes with their names, for people. */
interface Differences {
  readonly names: readonly string[]
  readonly change: PlannedChange
}

/** Longest value that a difference shows, characters. */
const maxShownValue = 60

/** What a key was, and what it becomes; the key alone where a value does not fit into a line. */
function differenceOf(key: string, from: unknown, to: unknown): string {
  const [before, after] = [from, to].map(valueText)
  return before === undefined || after === undefined ? key : `${key} ${before} -> ${after}`
}

/** A value as a lab file could have it, in one line; undefined: it is too long. */
function valueText(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return 'none'
  if (typeof value === 'object' && Object.keys(value).length === 0) return 'none'
  const text = flowOf(value)
  return text.length > maxShownValue || text.includes('\n') ? undefined : text
}

function flowOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  return `{${Object.entries(value)
    .map(([key, it]) => ` ${key}: ${flowOf(it)}`)
    .join(',')} }`
}

const placeOf = ({ x, y }: { readonly x?: number; readonly y?: number }): readonly unknown[] => [x, y]

class DifferenceList implements Differences {
  readonly names: string[] = []
  #name: string | undefined
  readonly #settings: Record<string, unknown> = {}
  readonly #properties: Record<string, unknown> = {}
  readonly #configs: string[] = []

  get change(): PlannedChange {
    return {
      ...(this.#name !== undefined && { name: this.#name }),
      settings: this.#settings as WantedSettings,
      properties: this.#properties,
      configs: this.#configs,
    }
  }

  rename(from: string, to: string): void {
    this.#name = to
    this.names.push(`its name was ${from}`)
  }

  setting(key: string, value: unknown, difference: string): void {
    this.#settings[key] = value
    // Both coordinates make one difference.
    if (!this.names.includes(difference)) this.names.push(difference)
  }

  property(key: string, value: unknown, before: unknown, name = key): void {
    this.#properties[key] = value
    if (name === 'ports_mapping') this.names.push('ports')
    else this.names.push(name === key ? differenceOf(name, before, value) : name)
  }

  config(name: string, word: string): void {
    this.#configs.push(name)
    this.names.push(word)
  }
}

const merged = (a: PlannedChange, b: PlannedChange): PlannedChange => ({
  ...a,
  ...b,
  settings: { ...a.settings, ...b.settings },
  properties: { ...a.properties, ...b.properties },
  configs: [...a.configs, ...b.configs],
})

/** The properties that hold the medium of a node, and the one that it shall have. */
const day0Keys = ({ day0 }: DesiredNode, { properties }: NodeRecord): string[] => {
  const both = [day0MediumIn(properties), day0 && day0Media[day0.medium]]
  return [...new Set(both.flatMap((medium) => medium?.property ?? []))]
}
/** The digest of the CD or disk that the file describes. A file that only names the CD, as an exported file does, leaves it as it is. */
const day0In = ({ day0, properties }: DesiredNode, { file }: NodeRecord): string | undefined =>
  day0?.digest ?? (day0MediumIn(properties) !== undefined ? file?.day0 : undefined)
/** The default number of ports of a switch or hub. */
const defaultPorts = 8
/** SHA-256 of an empty text. */
const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** The keys of a record that the file decides. */
const settingKeys = [
  ...[
    'x',
    'y',
    'symbol',
    'labels',
    'placement',
    'after',
    'ready',
    'port_name_format',
    'custom_adapters',
    'console',
    'console_type',
  ],
] as (keyof WantedSettings)[]

function settingsOf({ settings, labels, placement, after, ready }: DesiredNode): WantedSettings {
  return {
    ...settings,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(placement !== undefined && { placement }),
    ...(after.length > 0 && { after: [...after] }),
    ...(ready !== undefined && { ready }),
  }
}

/** The default of a setting; undefined: it has none, and is left as it is. */
function settingDefault(kind: DesiredNode['kind'], key: keyof WantedSettings): unknown {
  const { portNameFormat, node } = kindOf(kind)
  if (key === 'port_name_format') return portNameFormat ?? mapFields.port_name_format.default
  if (key === 'console_type') return node.properties.console_type?.default
  if (key === 'console') return undefined
  return mapFields[key as keyof typeof mapFields].default ?? null
}

/** The settings of a node that is recreated: those that the file does not give have their defaults, except the position on the map. */
export const completeSettings = (kind: DesiredNode['kind'], settings: WantedSettings): WantedSettings => ({
  ...Object.fromEntries(
    settingKeys
      .filter((key) => key !== 'x' && key !== 'y' && key !== 'console')
      .map((key) => [key, structuredClone(settingDefault(kind, key))]),
  ),
  ...settings,
})

/** The properties of a kind that an update can set and that have a default. */
function defaultsOf(kind: DesiredNode['kind'], record: NodeRecord): readonly (readonly [string, unknown])[] {
  const { ownValues } = kindOf(kind)
  const own = ownValues?.(record.properties) ?? []
  return staticDefaults(kind).filter(([key]) => !own.includes(key))
}

const defaults = new Map<string, readonly (readonly [string, unknown])[]>()
function staticDefaults(kind: DesiredNode['kind']): readonly (readonly [string, unknown])[] {
  const known = defaults.get(kind)
  if (known !== undefined) return known
  const { node, update, configs = {} }: KindDescriptor = kindOf(kind)
  const fields = new Set(Object.values(configs).map(({ field }) => field))
  const found = Object.entries(node.properties).flatMap(([key, schema]) =>
    schema.default !== undefined && key in update.properties && !fields.has(key) && !notProperties.has(key)
      ? [[key, schema.default] as const]
      : [],
  )
  defaults.set(kind, found)
  return found
}
/** Members of the update of a kind that are settings of the record, or ports. */
const notProperties: ReadonlySet<string> = new Set([
  'name',
  'console',
  'console_type',
  'custom_adapters',
  'ports_mapping',
  'port_count',
])

/** The settings of a new port of a segment. */
function portDefaults(kind: DesiredNode['kind'], port_number: number): Record<string, unknown> {
  const port = kindOf(kind).node.properties.ports_mapping?.items?.properties ?? {}
  const given = Object.entries(port as Record<string, { default?: unknown }>).flatMap(([key, schema]) =>
    schema.default === undefined ? [] : [[key, schema.default] as const],
  )
  return { name: `Ethernet${port_number}`, ...Object.fromEntries(given) }
}

const portList = (node: NodeRecord | undefined): { port_number: number }[] =>
  Array.isArray(node?.properties.ports_mapping) ? (node.properties.ports_mapping as { port_number: number }[]) : []

/** Whether a node has a value of the file: it shows it, or it shows what it showed after it had taken it. */
function isShown({ properties, file }: NodeRecord, key: string, value: unknown): boolean {
  const shown = properties[key]
  if (key === 'ports_mapping' ? samePorts(shown, value) : same(shown, value)) return true
  const taken = file?.normalizedValues?.[key]
  return taken !== undefined && taken[0] === fingerprint(value) && taken[1] === fingerprint(shown)
}

/** Ports as they are compared: by number, without absent members. */
const samePorts = (a: unknown, b: unknown): boolean => {
  const sorted = (list: unknown) =>
    Array.isArray(list) ? [...(list as { port_number: number }[])].sort((x, y) => x.port_number - y.port_number) : list
  return same(sorted(a), sorted(b))
}

/** What the record of a node says of the file. `managed`: the file made the node; `held`: properties that a withheld step would change. */
export function lastAppliedOf(
  want: DesiredNode,
  record: NodeRecord,
  { managed, configs }: Pick<NodeLastApplied, 'managed' | 'configs'>,
  isNew: boolean,
  held: readonly string[] = [],
): NodeLastApplied {
  const keys = [...Object.keys(want.settings), ...Object.keys(want.properties)]
  const normalizedValues = Object.entries(want.properties).flatMap(([key, value]) => {
    const shown = record.properties[key]
    const before = record.file?.normalizedValues?.[key]
    if (held.includes(key)) return before === undefined ? [] : [[key, before] as const]
    return same(shown, value) ? [] : [[key, [fingerprint(value), fingerprint(shown)]] as const]
  })
  const computeDefaults = isNew
    ? [
        ...defaultsOf(want.kind, record)
          .filter(([key, value]) => !(key in want.properties) && !same(record.properties[key], value))
          .map(([key]) => key),
        ...(want.settings.console_type === undefined &&
        record.console_type !== settingDefault(want.kind, 'console_type')
          ? ['console_type']
          : []),
      ]
    : (record.file?.computeDefaults ?? [])
  const day0 = held.some(isDay0Property) ? record.file?.day0 : day0In(want, record)
  return {
    managed,
    keys,
    configs,
    ...(computeDefaults.length > 0 && { computeDefaults }),
    ...(normalizedValues.length > 0 && { normalizedValues: Object.fromEntries(normalizedValues) }),
    ...(day0 !== undefined && { day0 }),
  }
}

/** The name of the file of a capture, as it was asked for. */
export const captureName = (capture: LinkRecord['capture']): string | undefined =>
  capture?.requestedName ?? capture?.file

/** Whether a link was made from the file. */
const isLinkMade = ({ file }: LinkRecord): boolean => file?.managed === true

const portKey = ({
  node_id,
  adapter_number,
  port_number,
}: Pick<LabLinkEnd, 'node_id' | 'adapter_number' | 'port_number'>): string =>
  `${node_id}/${adapter_number}/${port_number}`

const hasPort = (node: NodeRecord, { adapter_number, port_number }: WantedEnd): boolean =>
  !isKnownKind(node.node_type) ||
  portsOf(node).some((port) => port.adapter_number === adapter_number && port.port_number === port_number)

/** The name of a link for people. */
const linkName = ({ name, ends }: Pick<WantedLink, 'name' | 'ends'>): string =>
  name ?? ends.map(({ node, adapter_number, port_number }) => `${node}:${adapter_number}/${port_number}`).join(' -- ')

/** All filters of one direction that do something. */
function allFilters(both: Filters, one: Filters): Filters {
  const all = Object.entries({ ...both, ...one }).filter(([, value]) => {
    const [first] = value as readonly unknown[]
    return first !== 0 && first !== ''
  })
  return Object.fromEntries(all)
}

/** Whether two JSON values are equal; the order of members and absent ones do not count. */
export const same = (a: unknown, b: unknown): boolean => a === b || stable(a) === stable(b)

function stable(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'undefined'
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`
  const members = Object.entries(value).filter(([, it]) => it !== undefined)
  members.sort(([a], [b]) => compareText(a, b))
  return `{${members.map(([key, it]) => `${JSON.stringify(key)}:${stable(it)}`).join(',')}}`
}

/** A short digest of a JSON value (53 bits, cyrb53): to notice a change, not against forgery. It keeps secrets out of records. */
function fingerprint(value: unknown): string {
  const text = stable(value)
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    high = Math.imul(high ^ code, 2654435761)
    low = Math.imul(low ^ code, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36)
}
