import { Equal } from '@sinclair/typebox/value'
import { omit } from '../lib/omit.ts'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { defaultSubnet } from '../model/kinds/nat-subnet.ts'
import { kindOf } from '../model/kinds/node.ts'
import type {
  Desired,
  DesiredConfig,
  DesiredEnd,
  DesiredLink,
  DesiredManagement,
  DesiredNode,
  SegmentPort,
} from './desired.ts'
import { Diagnostics } from './diagnostics.ts'
import { documentOf, escaped } from './document.ts'
import { editedLabFile, isMap, type LabFileEdit, plainOf, valueAt } from './edit.ts'
import { ofCompute } from './from-project.ts'
import { withGivenAddresses } from './management.ts'
import { mapPositions } from './map-positions.ts'
import { keyOf } from './names.ts'
import { defaultOf } from './nodes.ts'
import { type RenamedNode, renamedLabFile } from './rename.ts'
import {
  checkEdits,
  type EditedObject,
  Edits,
  type Lost,
  member,
  type SavedChange,
  withoutEmpty,
} from './save-edits.ts'
import { fieldsOf } from './schema.ts'
import type { Fields } from './text.ts'
import { treeOf } from './tree.ts'

/** A lab file, and the lab that was made from it and changed since. */
export interface SaveInputs {
  readonly text: string
  /** What the file says. */
  readonly desired: Desired
  /** The lab, as a lab file of it would describe it; `desiredOfProject` leaves defaults out. */
  readonly actual: Desired
  /** Nodes of the lab, by the names that they have in the file; for nodes whose names differ. */
  readonly renamed: ReadonlyMap<string, RenamedNode>
  /** Names in the file of nodes that an apply of it would change. The settings of all others equal the file, however it writes them. */
  readonly changed: ReadonlySet<string>
  /** Names in the file of nodes whose configuration was changed on the node. */
  readonly configured: ReadonlySet<string>
  /** Save configurations. */
  readonly configs?: boolean
  /** Add nodes, segments and links that the file lacks, and remove those that the lab no longer has. */
  readonly all?: boolean
  /** The nodes of the lab, by their names: for values that `actual` leaves to the compute. */
  readonly records?: ReadonlyMap<string, SavedRecord>
  /** The computes, for those that the file names by names. */
  readonly computes?: readonly NamedCompute[]
  /** Ends of the links that are captured, whoever started it. */
  readonly captured?: readonly LinkEnds[]
}

/** A compute of the service. */
export interface NamedCompute {
  readonly compute_id: string
  readonly name: string
}

/** The ends of a link, by the names of its nodes. */
export interface LinkEnds {
  readonly ends: readonly [PlainEnd, PlainEnd]
}
type PlainEnd = Pick<DesiredEnd, 'node' | 'adapter_number' | 'port_number'>

/** The fields of a node of a lab that a save reads. */
interface SavedRecord {
  readonly compute_id: string
  readonly console: number | null
  readonly properties: Readonly<Record<string, unknown>>
}

/** A lab file that was brought up to date with its lab. */
export interface SavedLab {
  /** Comments and spelling stay; equal to the given one when nothing is to be saved. */
  readonly text: string
  readonly changes: readonly SavedChange[]
  /** Configurations as files, by their paths as the lab file writes them. */
  readonly files: Readonly<Record<string, string>>
}

/**
 * Writes the changes of a lab back into its file: positions, labels, settings, and names and impairment of links; with `configs` also
 * configurations; with `all` also new and deleted objects. A value that comes from a template, a variable or an alias is written at its node.
 * A change that a lab file cannot express is not written: a plan of the new file shows it.
 */
export function savedLab(given: SaveInputs): SavedLab {
  const { renamed } = given
  const nameOf = (name: string): string => renamed.get(name)?.name ?? name
  const inputs: SaveInputs = {
    ...given,
    ...renamedLabFile(given.text, given.desired, rawOf(given.text), renamed),
    changed: new Set([...given.changed].map(nameOf)),
    configured: new Set([...given.configured].map(nameOf)),
  }
  const known = new Set(inputs.desired.nodes.map(({ name }) => keyOf(name)))
  const before = documentOf(withoutComputes(inputs.desired, known))
  const raw = rawOf(inputs.text)
  const save = new Save(inputs, raw)
  const after = documentOf(withoutComputes(save.desired, known))
  const edits = new Edits(before, after, raw, inputs.all === true).all(inputs.desired, save.desired, save.lost)
  const checks = inputs.all === true ? checkEdits(inputs.desired, save) : []
  const list = withoutEmpty(
    [...withComputes(edits, computeEdits(inputs, raw)), ...checks].filter(({ edits }) => edits.length > 0),
    raw,
  )
  return {
    text: editedLabFile(
      inputs.text,
      list.flatMap(({ edits }) => edits),
    ),
    changes: withRenamed(
      list.map(({ edits: _, ...change }) => change),
      inputs,
    ),
    files: save.files,
  }
}

/** A lab without the computes of these nodes: the normal form lacks where the file names a compute, so `computeEdits` writes them. */
const withoutComputes = (desired: Desired, names: ReadonlySet<string>): Desired => ({
  ...desired,
  nodes: desired.nodes.map(({ compute_id, ...node }) =>
    compute_id === undefined || names.has(keyOf(node.name)) ? node : { ...node, compute_id },
  ),
})

/** The edits for nodes that are on other computes than their file says, by name. An edit of the compute of the lab is that of the first node. */
function computeEdits({ desired, records, computes = [] }: SaveInputs, raw: unknown): Map<string, LabFileEdit> {
  const root = isMap(raw) ? raw : {}
  const idOf = (word: string) =>
    computes.find((compute) => compute.compute_id === word || compute.name === word)?.compute_id ?? word
  const changes = desired.nodes.flatMap((node) => {
    const { name, compute_id: word, segment } = node
    const record = records?.get(name)
    if (word === undefined || record === undefined) return []
    const own = name === desired.management ? ['management'] : [segment === undefined ? 'nodes' : 'segments', name]
    const path = [...own, 'compute']
    const isOfLab = valueAt(raw, path) === undefined && escaped(word) === root.compute
    const isNamed = word !== idOf(word)
    const now = computes.find((compute) => compute.compute_id === record.compute_id)
    const value = escaped((isNamed ? now?.name : undefined) ?? record.compute_id)
    return [{ name, isMoved: idOf(word) !== record.compute_id, isOfLab, edit: { path, value } }]
  })
  const ofLab = changes.filter(({ isOfLab }) => isOfLab)
  const [first] = ofLab
  const isWhole = first?.isMoved === true && ofLab.every(({ edit }) => edit.value === first.edit.value)
  return new Map(
    changes.flatMap(({ name, isMoved, isOfLab, edit }): [string, LabFileEdit][] => {
      if (!isMoved || (isWhole && isOfLab && name !== first.name)) return []
      return [[name, isWhole && isOfLab ? { ...edit, path: ['compute'] } : edit]]
    }),
  )
}

const withComputes = (edits: readonly EditedObject[], computes: ReadonlyMap<string, LabFileEdit>): EditedObject[] =>
  edits.map((edited) => {
    const edit = edited.do === 'update' && edited.what !== 'link' ? computes.get(edited.name) : undefined
    if (edit === undefined) return edited
    const keys = [...edited.keys, 'compute']
    const [whole] = edited.edits
    const isWhole = whole?.path.length === 2 && whole.path[0] !== 'management'
    if (!isWhole || edit.path.length === 1) return { ...edited, keys, edits: [...edited.edits, edit] }
    return { ...edited, keys, edits: [{ ...whole, value: { ...(whole.value as Fields), compute: edit.value } }] }
  })

/** The changes, with those of the names of nodes. */
function withRenamed(changes: readonly SavedChange[], { desired, renamed }: SaveInputs): SavedChange[] {
  const isOf =
    (name: string) =>
    (change: SavedChange): boolean =>
      change.name === name && (change.what === 'node' || change.what === 'segment')
  const named = [...renamed].map(([was, { name }]): SavedChange => {
    const what = desired.nodes.find((node) => node.name === name)?.segment === undefined ? 'node' : 'segment'
    return { ...(changes.find(isOf(name)) ?? { do: 'update', what, name, keys: [] }), was }
  })
  return [...named, ...changes.filter((change) => !named.some(({ name }) => isOf(name)(change)))]
}

/** The file as it is written: with templates and variables. */
function rawOf(text: string): unknown {
  const root = treeOf(text, new Diagnostics())
  return root && plainOf(root)
}

/** The normal form of the file, with the changes of the lab. */
class Save {
  readonly desired: Desired
  readonly files: Record<string, string> = {}
  /** Objects that `desired` still has and the lab no longer has. */
  readonly lost: Lost
  readonly #inputs: SaveInputs
  readonly #raw: Readonly<Record<string, unknown>>
  readonly #actual: Desired
  /** The name of the management network in the saved file. */
  readonly #management: string | undefined
  /** How many configurations and parts of CDs come from a file. */
  readonly #uses = new Map<string, number>()
  /** Settings of ports that have a link in the file, by segment; undefined: the member has them. */
  readonly #ports = new Map<string, Map<number, SegmentPort | undefined>>()

  constructor(inputs: SaveInputs, raw: unknown) {
    this.#inputs = inputs
    const { desired, all = false } = inputs
    this.#raw = { ...member(raw, 'segments'), ...member(raw, 'nodes') }
    this.#actual = inputs.actual
    this.#management = managementIn(inputs)
    for (const { configs, day0 } of desired.nodes)
      for (const { file } of [...Object.values(configs), ...Object.values(day0?.files ?? {})])
        if (file !== undefined) this.#uses.set(file, (this.#uses.get(file) ?? 0) + 1)
    const there = new Map(this.#actual.nodes.map((node) => [keyOf(node.name), node]))
    const nodes = desired.nodes.map((node) => this.#node(node, there.get(keyOf(node.name))))
    // A node that became a segment, or the reverse, is written in the other section, with its links.
    const turned = all ? nodes.filter((it) => isTurned(it, there.get(keyOf(it.name)))) : []
    const known = new Set(nodes.filter((it) => !turned.includes(it)).map(({ name }) => keyOf(name)))
    const added = all ? this.#actual.nodes.filter(({ name }) => !known.has(keyOf(name))) : []
    const links = this.#links([...nodes, ...added], new Set(turned.map(({ name }) => keyOf(name))))
    const { records = new Map() } = inputs
    const lost = nodes.filter(
      (it) => all && (turned.includes(it) || (!there.has(keyOf(it.name)) && !records.has(it.name))),
    )
    const left = this.#withAddresses([...nodes.filter((it) => !lost.includes(it)), ...added])
    const byName = new Map(left.map((node) => [node.name, node]))
    const lostLinks = all ? this.#lostLinks : new Set<DesiredLink>()
    const positions = automaticPositions({ nodes: left, links: links.filter((it) => !lostLinks.has(it)) }, there)
    const placed = (node: DesiredNode): DesiredNode => {
      const position = positions.get(node)
      return position === undefined ? node : { ...node, settings: { ...node.settings, ...position } }
    }
    this.lost = { nodes: new Set(lost), links: lostLinks }
    this.desired = {
      ...omit(desired, 'management'),
      ...(this.#management !== undefined && { management: this.#management }),
      nodes: [...nodes, ...added].map((node) => {
        const own = lost.includes(node) ? node : (byName.get(node.name) ?? node)
        return this.#withPorts(placed(own))
      }),
      links,
    }
  }

  #node(node: DesiredNode, actual: DesiredNode | undefined): DesiredNode {
    const { all = false, changed, records } = this.#inputs
    if (actual === undefined) return node
    if (actual.kind !== node.kind) return all && !isTurned(node, actual) ? actual : node
    const { x, y } = actual.settings
    const isPlaced = node.settings.x !== undefined && x !== undefined && y !== undefined
    const management = this.#managementOf(node, actual)
    const moved = {
      ...omit(node, 'management'),
      settings: { ...node.settings, ...(isPlaced && { x, y }) },
      labels: actual.labels,
      ...(management !== undefined && { management }),
    }
    // Its adapters and addresses are others, in the network and outside of it.
    const isOther = (management === undefined) !== (node.management === undefined)
    const own = changed.has(node.name) || isOther ? withSettings(moved, actual) : moved
    const record = records?.get(node.name)
    const saved = all && record !== undefined && changed.has(node.name) ? withRecord(own, record) : own
    return this.#inputs.configs === true ? { ...saved, configs: this.#configs(node, actual) } : saved
  }

  /** How a node is in the management network of the saved file. */
  #managementOf({ management }: DesiredNode, actual: DesiredNode): DesiredNode['management'] {
    if (this.#management === undefined) return undefined
    // The lab has none that a file could have.
    if (this.#actual.management === undefined) return management
    const { all = false } = this.#inputs
    if (actual.management === undefined) return all ? undefined : management
    return isSameManagement(management, actual.management) ? management : actual.management
  }

  /** The nodes with those addresses that would be others, as names and nodes of the saved file are others. */
  #withAddresses(nodes: readonly DesiredNode[]): readonly DesiredNode[] {
    const net = nodes.find(({ name }) => name === this.#management)
    return net === undefined ? nodes : withGivenAddresses(nodes, String(net.properties.subnet ?? defaultSubnet))
  }

  #configs(node: DesiredNode, actual: DesiredNode): DesiredNode['configs'] {
    const { all = false, records } = this.#inputs
    const { configs: access = {} }: KindDescriptor = kindOf(node.kind)
    const shown = records?.get(node.name)?.properties ?? {}
    // The record does not show a configuration that is read by an action: null does not mean that it is empty.
    const isEmpty = ({ field, action }: { field: string; action?: string }) =>
      shown[field] === '' || (shown[field] === null && action === undefined)
    const isGone = (name: string) =>
      all && actual.configs[name] === undefined && access[name] !== undefined && isEmpty(access[name])
    const configs: Record<string, DesiredConfig> = Object.fromEntries(
      Object.entries(node.configs).filter(([name]) => !isGone(name)),
    )
    for (const [name, now] of Object.entries(actual.configs)) {
      const config = configs[name]
      if (config !== undefined && !this.#inputs.configured.has(node.name)) continue
      if (config?.digest === now.digest) continue
      const isOwn = isMap(this.#raw[node.name]) && 'config' in (this.#raw[node.name] as object)
      if (config !== undefined && config.file === undefined) {
        configs[name] = now
        continue
      }
      const isSole = isOwn && config?.file !== undefined && this.#uses.get(config.file) === 1
      const file = isSole ? config.file : this.#newFile(node.name, name)
      this.files[file] = now.text
      configs[name] = { ...now, file }
    }
    return configs
  }

  /** `./configs/R1.cfg`: a path that the file does not name yet. */
  #newFile(node: string, config: string): string {
    const plain = node.replaceAll(/[^\p{L}\p{N}._-]/gu, '-').replace(/^\./, '_')
    const stem = `./configs/${plain}${config === 'startup' ? '' : `-${config}`}`
    const isTaken = (path: string) => this.#uses.has(path) || path in this.files
    let path = `${stem}.cfg`
    for (let number = 2; isTaken(path); number++) path = `${stem}-${number}.cfg`
    return path
  }

  /** The settings of a port of a switch in the lab; undefined: its segment is as the file says, or has no such settings. */
  #portOf({ node: name, port_number, port }: DesiredEnd): SegmentPort | undefined {
    const node = this.#inputs.changed.has(name) ? this.#actual.nodes.find((it) => it.name === name) : undefined
    if (node?.segment === undefined || kindOf(node.kind).hasVlans !== true) return undefined
    return port ?? (port_number === undefined ? {} : (node.segment.ports[port_number] ?? {}))
  }

  /** A member with the tagging of its port in the lab. Ports of an entry of `links` are in `ports` of their segment. */
  #withTagging(link: DesiredLink, actual: DesiredLink): DesiredLink {
    const ends = endsLike(link, actual)
    const found = ends.map((end) => this.#portOf(end))
    for (const [index, port] of found.entries()) {
      const { node } = link.ends[index] as DesiredEnd
      const number = link.ends[index]?.port_number ?? ends[index]?.port_number
      if (port === undefined || number === undefined) continue
      const ports = this.#ports.get(node) ?? new Map<number, SegmentPort | undefined>()
      this.#ports.set(node, ports.set(number, link.memberOf === undefined ? port : undefined))
    }
    const [one, ...others] = found.filter((it) => it !== undefined)
    // The tagging of a member is for both of its ends.
    if (link.memberOf === undefined || one === undefined || others.some((it) => !Equal(it, one))) return link
    return { ...link, ends: [withPort(link.ends[0], one), withPort(link.ends[1], one)] }
  }

  /** A switch with the settings of its ports in the lab, but for those that its members have. */
  #withPorts(node: DesiredNode): DesiredNode {
    const actual = this.#actual.nodes.find(({ name }) => name === node.name)
    if (actual === undefined || kindOf(actual.kind).hasVlans !== true || !this.#inputs.changed.has(node.name))
      return node
    if (node.segment === undefined || actual.segment === undefined) return node
    const ports = new Map(Object.entries({ ...actual.segment.ports }).map(([number, it]) => [Number(number), it]))
    for (const [number, port] of this.#ports.get(node.name) ?? []) {
      if (port === undefined || Object.keys(port).length === 0) ports.delete(number)
      else ports.set(number, port)
    }
    return { ...node, segment: { ...node.segment, ports: Object.fromEntries(ports) } }
  }

  readonly #lostLinks = new Set<DesiredLink>()

  /** `turned`: keys of the names of nodes that are in the other section now. */
  #links(nodes: readonly DesiredNode[], turned: ReadonlySet<string>): DesiredLink[] {
    const { desired, all = false } = this.#inputs
    const left = new Set(this.#actual.links)
    const links = desired.links.map((link) => {
      const isOfTurned = link.ends.some(({ node }) => turned.has(keyOf(node)))
      const found = isOfTurned ? undefined : [...left].find((other) => isSameLink(link, other))
      if (found === undefined) {
        this.#lostLinks.add(link)
        return link
      }
      left.delete(found)
      const saved = this.#withTagging(withImpairment(link, found), found)
      return all ? this.#withCapture(saved, found) : saved
    })
    if (!all) return links
    const names = new Set(nodes.map(({ name }) => keyOf(name)))
    return [...links, ...[...left].filter(({ ends }) => ends.every(({ node }) => names.has(keyOf(node))))]
  }

  /** A link with the capture that the lab file has started; without one when the link is not captured. */
  #withCapture({ capture, ...link }: DesiredLink, actual: DesiredLink): DesiredLink {
    const { captured = [] } = this.#inputs
    if (capture !== undefined && actual.capture === undefined)
      return captured.some((it) => isSameLink(actual, it)) ? { ...link, capture } : link
    const isSame = capture !== undefined && (capture.file === undefined || capture.file === actual.capture?.file)
    const now = isSame ? capture : actual.capture
    return { ...link, ...(now !== undefined && { capture: now }) }
  }
}

/** Whether a node of the file is a segment in the lab, or the other way round. */
const isTurned = (node: DesiredNode, actual: DesiredNode | undefined): boolean =>
  actual !== undefined && (actual.segment === undefined) !== (node.segment === undefined)

/**
 * The positions in the lab of nodes that the saved file does not place, when one of these is not where an apply of that file puts it. What an
 * apply chooses depends on the nodes with a position and on the links, so it is the saved file that counts: a second save must find nothing to write.
 */
function automaticPositions(
  saved: Pick<Desired, 'nodes' | 'links'>,
  there: ReadonlyMap<string, DesiredNode>,
): Map<DesiredNode, Pick<DesiredNode['settings'], 'x' | 'y'>> {
  const places = mapPositions(saved)
  const found = saved.nodes.flatMap((node) => {
    const [automatic, actual] = [places.get(keyOf(node.name)), there.get(keyOf(node.name))]
    const { x, y } = actual?.settings ?? {}
    const isShown = automatic !== undefined && actual?.kind === node.kind && x !== undefined && y !== undefined
    return isShown ? [{ node, position: { x, y }, automatic }] : []
  })
  const isMoved = found.some(({ position, automatic }) => !Equal(position, automatic))
  return new Map(isMoved ? found.map(({ node, position }) => [node, position]) : [])
}

/** The ends of a link in the lab, in the order of the file. */
const endsLike = ({ ends: [a, b] }: DesiredLink, { ends }: DesiredLink): readonly [DesiredEnd, DesiredEnd] =>
  isSameEnd(a, ends[0]) && isSameEnd(b, ends[1]) ? ends : [ends[1], ends[0]]

const withPort = ({ port: _, ...end }: DesiredEnd, port: SegmentPort): DesiredEnd =>
  Object.keys(port).length === 0 ? end : { ...end, port }

/** The name of the management network in the saved file: with `all` that of the lab, unless the file has it as a segment. */
function managementIn({ desired, actual, all = false }: SaveInputs): string | undefined {
  if (!all) return desired.management
  const has = ({ nodes }: Desired, name: string | undefined) =>
    name !== undefined && nodes.some((node) => keyOf(node.name) === keyOf(name))
  if (has(actual, desired.management)) return desired.management
  return has(desired, actual.management) ? undefined : actual.management
}

const isSameManagement = (a: DesiredNode['management'], b: DesiredManagement): boolean =>
  a?.address === b.address && Equal(a.ports, b.ports)

/** A node of the file with the settings that it has in the lab. */
function withSettings(node: DesiredNode, actual: DesiredNode): DesiredNode {
  const fields = fieldsOf(node.kind)
  const gone = Object.entries(node.properties).flatMap(([key, value]) => {
    if (key in actual.properties || ofCompute.has(key)) return [[key, value] as const]
    // The lab has the default of the setting. The default is written, as a template may give another value.
    const byDefault = fields[key] && defaultOf(fields[key])
    return [[key, byDefault ?? value] as const]
  })
  const { symbol, console_type, port_name_format, custom_adapters } = actual.settings
  const { console, x, y } = node.settings
  const { ready: _, ...others } = node
  return {
    ...others,
    properties: { ...Object.fromEntries(gone), ...actual.properties },
    settings: {
      ...(console !== undefined && { console }),
      ...(x !== undefined && { x }),
      ...(y !== undefined && { y }),
      ...(symbol !== undefined && { symbol }),
      ...(console_type !== undefined && { console_type }),
      ...(port_name_format !== undefined && { port_name_format }),
      ...(custom_adapters !== undefined && { custom_adapters }),
    },
    after: isSameSet(node.after, actual.after) ? node.after : actual.after,
    ...(actual.ready !== undefined && { ready: actual.ready }),
  }
}

/** A node with the values that it has in the lab for those settings of the file that a compute would choose otherwise. */
function withRecord(node: DesiredNode, { console, properties }: SavedRecord): DesiredNode {
  const given = Object.entries(node.properties).map(([key, value]) =>
    ofCompute.has(key) && properties[key] != null ? [key, properties[key]] : [key, value],
  )
  const hasConsole = node.settings.console !== undefined && console !== null
  return {
    ...node,
    properties: Object.fromEntries(given),
    settings: { ...node.settings, ...(hasConsole && { console }) },
  }
}

const isSameSet = (a: readonly string[], b: readonly string[]): boolean =>
  Equal(a.map(keyOf).sort(), b.map(keyOf).sort())

/** A link of the file with the name and the impairment that it has in the lab. */
function withImpairment(link: DesiredLink, actual: DesiredLink): DesiredLink {
  const isTurned = !isSameEnd(link.ends[0], actual.ends[0]) || !isSameEnd(link.ends[1], actual.ends[1])
  const { name: _, ...others } = link
  return {
    ...others,
    ...(actual.name !== undefined && { name: actual.name }),
    filters_ab: isTurned ? actual.filters_ba : actual.filters_ab,
    filters_ba: isTurned ? actual.filters_ab : actual.filters_ba,
    suspend: actual.suspend,
  }
}

/** Whether an end of the file may be one of the lab: a port of a segment may be open in both. */
const isSameEnd = (a: PlainEnd, b: PlainEnd): boolean =>
  keyOf(a.node) === keyOf(b.node) &&
  a.adapter_number === b.adapter_number &&
  (a.port_number === undefined || b.port_number === undefined || a.port_number === b.port_number)

const isSameLink = ({ ends: [a, b] }: LinkEnds, { ends: [c, d] }: LinkEnds): boolean =>
  (isSameEnd(a, c) && isSameEnd(b, d)) || (isSameEnd(a, d) && isSameEnd(b, c))
