import { isOutside } from '../labfile/files.ts'
import { labName } from '../labfile/names.ts'
import type { Fields } from '../labfile/text.ts'
import { nearest } from '../lib/text/nearest-word.ts'
import { maxAdapters } from '../model/kinds/machine-emulator.ts'
import { becomes, knownKinds } from './containerlab-kinds.ts'
import {
  type ConvertedLab,
  cdOf,
  Draft,
  type DraftEnd,
  day0Fields,
  isDevice,
  lastNumber,
  mapPosition,
  namedPorts,
} from './draft.ts'
import { guestCommandLine, type LinuxSetup, linuxSetup, pcScript } from './linux-commands.ts'
import { type MachineModelName, machineModel } from './machines.ts'
import { type Part, quoted, type Source } from './source.ts'

/** Whether a text file is in the directory of a foreign lab, or below it. */
export type HasFile = (path: string) => boolean

/** Positions on the map by the name of the node. */
export type MapPositions = ReadonlyMap<string, readonly [x: number, y: number]>

/** Why settings are left out, by their names. */
const reasons: Readonly<Record<string, string>> = {
  ...{ binds: 'a node has no files of the host', license: 'put it into the image, or enter it at the console' },
  ...{ ports: 'a nat publishes ports (port_forwards)', type: 'the image says which model the machine is' },
  ...{ config: 'there are no templates of configurations', mtu: 'set it in the nodes' },
  ...{ 'mgmt-ipv4': 'there is no management network', 'mgmt-ipv6': 'there is no management network' },
  ...Object.fromEntries(
    ['env', 'env-files', 'cmd', 'entrypoint', 'user', 'runtime', 'network-mode', 'restart-policy', 'auto-remove'].map(
      (key) => [key, 'it applies only to containers'],
    ),
  ),
}
const because = (key: string): string => `is not imported${reasons[key] === undefined ? '' : `: ${reasons[key]}`}`

export interface ContainerlabInput {
  readonly positions?: MapPositions | undefined
  /** Whether a file is in the directory of the topology, and may be a configuration. Absent: it is not known. */
  readonly hasFile?: HasFile | undefined
}

/** The topology of a lab of containerlab (*.clab.yml) as a lab file. 400 when nothing of it can be made. */
export function importContainerlab(source: Source, input: ContainerlabInput = {}): ConvertedLab {
  const { root } = source
  const topology = root.get('topology')
  if (topology.isAbsent) throw root.error('topology is missing: this is not a topology of containerlab')
  const lab = root.get('name').textOrNone() ?? 'lab'
  // The prefix is of the names of containers.
  root.get('prefix')
  const management = root.get('mgmt')
  if (!management.isAbsent) management.leaveOut('is not imported: there is no management network, nodes have consoles')
  root.leaveOutUnread(because)

  const links = topology
    .get('links')
    .itemsOrNone()
    .flatMap((link) => link.attempt(readLink) ?? [])
  const topologyReader = new TopologyReader(topology, portsOf(links), input)
  topologyReader.addNodes()
  topologyReader.draft.requireNodes()
  for (const link of links) link.part.attempt(() => topologyReader.addLink(link))
  topologyReader.leaveOutUnread()
  return topologyReader.draft.finish(labName(lab), { source })
}

/** The positions of a file `*.annotations.json`, which the editor of containerlab keeps beside a topology. */
export function positionsOf({ root }: Source): MapPositions {
  const annotations = root.asObject().get('nodeAnnotations').itemsOrNone()
  return new Map(
    annotations.flatMap((it) => {
      const position = it.asObject().get('position').asObject()
      const [x, y] = ['x', 'y'].map((key) => position.get(key).numberOrNone())
      const id = it.asObject().get('id').textOrNone()
      return x === undefined || y === undefined || id === undefined ? [] : [[id, [x, y] as const] as const]
    }),
  )
}

/** One end of a link, as it is read. */
interface ReadEnd {
  readonly part: Part
  readonly node: string
  readonly port: string
  /** Addresses with prefix lengths that the link gives the port. */
  readonly addresses: readonly string[]
}

/** A link, as it is read. */
interface ReadLink {
  readonly part: Part
  /** One that is not imported has one, so that the node has the port; or none. */
  readonly ends: readonly ReadEnd[]
}

/** Names that are not known for which the nearest one is searched. */
const maxHints = 20
/** Types of links between two nodes. `veth-stitch` is one by way of the host. */
const pairTypes = ['brief', 'veth', 'veth-stitch']
/** What is outside of the nodes of a topology, by the name that it has as an end of a link. */
const outsides = ['host', 'mgmt-net', 'macvlan'] as const

function readLink(link: Part): ReadLink {
  const type = (link.get('type').optionalText() ?? 'brief').trim().toLowerCase()
  const endpoints = link.get('endpoints')
  if (pairTypes.includes(type) && !(type === 'veth-stitch' && endpoints.isAbsent)) {
    const ends = endpoints.items().map(readEnd)
    if (ends.length !== 2)
      throw (endpoints.isAbsent ? link : endpoints).error('expected two endpoints, such as ["r1:eth1", "r2:eth1"]')
    link.leaveOutUnread(because)
    return { part: link, ends }
  }
  const device = link.get('host-interface').optionalText() ?? ''
  const own = link.get('endpoint')
  if ((outsides as readonly string[]).includes(type)) {
    const ends = [readEnd(own), { part: link, node: type, port: device, addresses: [] }]
    link.leaveOutUnread(because)
    return { part: link, ends }
  }
  link.leaveOut(`the link is not imported: a lab file has no links of type ${quoted(type)}`)
  return { part: link, ends: own.isAbsent ? [] : [readEnd(own)] }
}

function readEnd(part: Part): ReadEnd {
  if (part.isObject) {
    const [node, port] = [part.get('node').text(), part.get('interface').text()]
    const addresses = ['ipv4', 'ipv6'].map((key) => part.get(key).textOrNone())
    part.leaveOutUnread(because)
    return { part, node, port, addresses: addresses.filter((it) => it !== undefined) }
  }
  const [, node, port] = /^([^:]+):(.+)$/s.exec(part.text()) ?? []
  if (node === undefined || port === undefined)
    throw part.error(`expected an endpoint such as "r1:eth1", got ${quoted(part.value)}`)
  return { part, node, port, addresses: [] }
}

/** By node and port: the end of a link that names the port first. */
function portsOf(links: readonly ReadLink[]): Map<string, Map<string, ReadEnd>> {
  const ports = new Map<string, Map<string, ReadEnd>>()
  for (const end of links.flatMap(({ ends }) => ends)) {
    const own = ports.get(end.node) ?? new Map<string, ReadEnd>()
    ports.set(end.node, own)
    if (!own.has(end.port)) own.set(end.port, end)
  }
  return ports
}

/** A node of the topology with its settings: its own, and those of its group, its kind and the defaults, which follow in this order. */
class Settings {
  readonly name: string
  readonly part: Part
  readonly #sections: readonly Part[]

  constructor(name: string, part: Part, sections: readonly Part[]) {
    this.name = name
    this.part = part
    this.#sections = sections
  }

  /** The first section that has the setting. */
  get(key: string): Part | undefined {
    return this.#sections.map((section) => section.get(key)).find((part) => !part.isAbsent)
  }

  /** The setting of all sections, the first one of each member wins. */
  members(key: string): Map<string, Part> {
    const all = this.#sections.flatMap((section) => section.get(key).asObject().entries())
    return new Map(all.reverse())
  }
}

class TopologyReader {
  readonly draft = new Draft({ bridgesPassTags: true })
  readonly #topology: Part
  readonly #positions: MapPositions
  readonly #ports: ReadonlyMap<string, ReadonlyMap<string, ReadEnd>>
  readonly #hasFile: HasFile | undefined
  /** The sections that nodes take settings from, by their path. */
  readonly #sections = new Map<string, Part>()
  /** By the name in the topology: the name in the lab file, and how a port is named there. */
  readonly #nodes = new Map<string, { name: string; fields: Fields; portOf: (port: string) => string | undefined }>()
  /** Nodes that stand for the host and that no link uses yet. */
  readonly #hosts = new Map<string, Settings>()
  readonly #hostNames = new Set<string>()
  #hints = 0
  readonly #segments = new Map<string, string>()

  constructor(
    topology: Part,
    ports: ReadonlyMap<string, ReadonlyMap<string, ReadEnd>>,
    { positions = new Map(), hasFile }: ContainerlabInput,
  ) {
    this.#topology = topology
    this.#positions = positions
    this.#ports = ports
    this.#hasFile = hasFile
  }

  addNodes(): void {
    const part = this.#topology.get('nodes')
    if (part.isAbsent) throw this.#topology.error('nodes is missing')
    const nodes = part.entries().flatMap(([name, it]) => this.draft.readNode(it, () => this.#settings(name, it)) ?? [])
    for (const node of nodes) this.draft.readNode(node.part, () => this.#addNode(node))
    for (const node of nodes) this.#addOrder(node)
  }

  addLink({ part, ends: [first, second] }: ReadLink): void {
    if (first === undefined || second === undefined) return
    const [a, b] = [this.#end(first), this.#end(second)]
    if (a !== undefined && b !== undefined) this.draft.link(part, a, b)
  }

  leaveOutUnread(): void {
    for (const section of this.#sections.values()) section.leaveOutUnread(because)
    for (const { part } of this.#hosts.values()) part.leaveOut('is not imported: no link uses it')
    for (const group of ['kinds', 'groups'])
      for (const [name, part] of this.#topology.get(group).asObject().entries())
        if (!this.#sections.has(`${group}/${name}`)) part.leaveOut('is not imported: no node uses it')
    this.#topology.leaveOutUnread(because)
  }

  #settings(name: string, part: Part): Settings {
    const own = this.#section(`nodes/${name}`, part)
    const defaults = this.#section('defaults', this.#topology.get('defaults'))
    const named = (group: string, key: string | undefined): Part[] =>
      key === undefined ? [] : [this.#section(`${group}/${key}`, this.#topology.get(group).asObject().get(key))]
    const groups = named('groups', own.get('group').textOrNone() ?? defaults.get('group').textOrNone())
    const [kind] = [own, ...groups, defaults].map((it) => it.get('kind')).filter((it) => !it.isAbsent)
    if (kind === undefined) throw part.error('kind is missing, expected one such as linux')
    return new Settings(name, part, [own, ...groups, ...named('kinds', kind.text()), defaults])
  }

  /** The same object for the same path, so that it knows what was read of it. */
  #section(path: string, part: Part): Part {
    const known = this.#sections.get(path) ?? part.asObject()
    this.#sections.set(path, known)
    return known
  }

  #addNode(node: Settings): void {
    const kind = node.get('kind') as Part
    const word = kind.text()
    const what = becomes(word)
    const ports = this.#ports.get(node.name) ?? new Map<string, ReadEnd>()
    const mapFields: Fields = { ...this.#at(node), ...orderFields(node) }
    const add = (fields: Fields, portOf: (port: string) => string | undefined = (port) => port): void => {
      const ready = [mapFields.ready, fields.ready].filter((it) => it !== undefined)
      const all = {
        ...fields,
        ...mapFields,
        ...labelsOf(node),
        ...(ready.length > 0 && { ready: ready.length > 1 ? ready : ready[0] }),
      }
      this.#nodes.set(node.name, { name: this.draft.node(node.part, node.name, all), fields: all, portOf })
    }
    if (what === 'host') {
      this.#hosts.set(node.name, node)
      this.#hostNames.add(node.name)
      return
    }
    if (what === 'switch') {
      kind.leaveOut(`${word}: a bridge of the host becomes a switch of the lab`)
      const name = this.draft.segment(node.part, node.name, { kind: 'switch', ...this.#at(node) })
      this.#nodes.set(node.name, { name, fields: {}, portOf: () => undefined })
      return
    }
    if (what === 'linux') return this.#addLinux(node, ports, add)
    if (what === 'iou') {
      const numbers = iouPorts(ports)
      const image = imageName(node, word, 'bin')
      const config = this.#configOf(node)
      const slots = [...numbers.values()].map((it) => Math.floor(it / 4) + 1)
      add(
        {
          ...{ kind: 'iou', image, ethernet_adapters: Math.max(1, ...slots) },
          ...{ serial_adapters: 0, ...(config !== undefined && { config }) },
        },
        (port) => `e${Math.floor((numbers.get(port) ?? 0) / 4)}/${(numbers.get(port) ?? 0) % 4}`,
      )
      return
    }
    const { model, isKnown } = what
    if (!isKnown) {
      kind.leaveOut(() => {
        const hint = nearest(word, knownKinds)
        const near = hint === undefined ? '' : `, did you mean ${quoted(hint)}?`
        return `the kind ${quoted(word)} is not known${near}; it becomes a machine`
      })
    }
    this.#addMachine(node, { word, model, isKnown, ports, add })
  }

  #addMachine(
    node: Settings,
    {
      word,
      model,
      isKnown,
      ports,
      add,
    }: {
      word: string
      model: MachineModelName
      isKnown: boolean
      ports: ReadonlyMap<string, ReadEnd>
      add: (fields: Fields) => void
    },
  ): void {
    const { fields, firstPort = 1, day0, ready, warning } = machineModel(model)
    if (warning !== undefined && isKnown) node.get('kind')?.leaveOut(`${word}: ${warning}`)
    const parts = new Map([...ports].map(([port, { part }]) => [port, part]))
    const adapterOf = (port: string): number | undefined => {
      const number = lastNumber(port)
      return number === undefined || /^eth\d+$/.test(port) ? number : number - firstPort + 1
    }
    const { adapters, names } = namedPorts(parts, adapterOf, maxAdapters)
    const config = this.#configOf(node)
    if (config !== undefined && day0 === undefined)
      node
        .get('startup-config')
        ?.leaveOut('is not imported: this machine reads no configuration from a CD, type it at its console')
    for (const { part, addresses } of ports.values())
      if (addresses.length > 0)
        part.leaveOut(`the addresses ${addresses.join(', ')} are not imported: set them in the machine`)
    leaveOutCommands(node)
    add({
      ...fields,
      image: imageName(node, word, 'qcow2'),
      ...memoryOf(node),
      ...processorsOf(node),
      adapters: Math.max(adapters, 1),
      ...(names !== undefined && { ports: names }),
      ...(config !== undefined && day0 !== undefined && day0Fields(day0, cdOf(day0.file, config), fields)),
      ...(ready !== undefined && { ready: { console: ready } }),
    })
  }

  /** A Linux host: a pc when it has one link at most, else a guest of examples/guests. */
  #addLinux(
    node: Settings,
    ports: ReadonlyMap<string, ReadEnd>,
    add: (fields: Fields, portOf?: (port: string) => string | undefined) => void,
  ): void {
    const image = node.get('image')
    const exec = node.get('exec')
    const given = [...ports.values()].flatMap(({ port, addresses }) =>
      addresses.map((address) => ({ device: port, address })),
    )
    // They may be those of all nodes.
    const commands = (exec?.itemsOrNone() ?? []).flatMap((it) => it.textOrNone() ?? [])
    const size = commands.reduce((sum, it) => sum + 1 + Math.floor(it.length / 100), 0)
    this.draft.count(exec ?? node.part, size)
    const read = linuxSetup(commands)
    // The guest that is a router forwards anyway.
    const others = read.others.filter((it) => !/\bip_forward\b.*1$|\bforwarding\b.*1$/.test(it))
    const setup: LinuxSetup = { ...read, others, addresses: [...given, ...read.addresses] }
    const note = (message: string) => (exec ?? node.part).leaveOut(message)
    const forwards = read.others.some((it) => it.includes('ip_forward'))
    const isRouter = forwards || /(^|\/)frr/i.test(image?.textOrNone() ?? '')
    for (const key of ['memory', 'cpu', 'startup-config']) node.get(key)?.leaveOut(because(key))
    if (ports.size <= 1 && !isRouter) {
      image?.leaveOut('a container with one link becomes a pc')
      const text = pcScript(setup, note)
      add({ kind: 'pc', ...(text !== '' && { config: { text } }) }, () => undefined)
      return
    }
    const initrd = isRouter ? 'frr.img' : 'busybox.img'
    image?.leaveOut(`a container becomes the guest vmlinuz with ${initrd}: examples/guests/make.sh makes both`)
    const parts = new Map([...ports].map(([port, { part }]) => [port, part]))
    const { adapters, names } = namedPorts(parts, lastNumber, maxAdapters)
    add({
      ...{ kind: 'machine-emulator', platform: 'x86_64', ram: isRouter ? 192 : 128 },
      ...{ adapters, adapter_type: 'virtio-net-pci', kernel_image: 'vmlinuz', initrd },
      kernel_command_line: guestCommandLine(node.name, setup, note),
      ...(names !== undefined && { ports: names }),
      ready: { console: '# ' },
    })
  }

  #at(node: Settings): Fields {
    const labels = node.members('labels')
    this.draft.count(node.part, labels.size)
    const [x, y] = ['graph-posX', 'graph-posY'].map((key) => labels.get(key)?.numberOrNone())
    const at = x !== undefined && y !== undefined ? [x, y] : this.#positions.get(node.name)
    return at === undefined ? {} : { at: mapPosition(at) }
  }

  /** `stages` and `wait-for`: nodes that must be ready before this one starts. */
  #addOrder(node: Settings): void {
    const waits: { part: Part; name: string }[] = []
    const addWait = (part: Part, name: Part) => {
      const text = name.attempt((it) => it.text())
      if (text !== undefined) waits.push({ part, name: text })
    }
    for (const part of node.get('wait-for')?.itemsOrNone() ?? []) addWait(part, part)
    for (const [, stage] of node.get('stages')?.asObject().entries() ?? []) {
      for (const part of stage.asObject().get('wait-for').itemsOrNone()) {
        addWait(part, part.asObject().get('node'))
        part.asObject().get('stage')
      }
      stage.leaveOutUnread(because)
    }
    const own = this.#nodes.get(node.name)
    const after = new Set<string>()
    for (const { part, name } of waits) {
      const other = this.#nodes.get(name)
      if (other === undefined) part.leaveOut(`is not imported: there is no node ${quoted(name)}${this.#hint(name)}`)
      else if (own === undefined || this.draft.isSegment(own.name) || this.draft.isSegment(other.name))
        part.leaveOut('is not imported: a segment has no order')
      else if (other !== own) after.add(other.name)
    }
    if (own !== undefined && after.size > 0) own.fields.after = [...after]
  }

  #end({ part, node, port }: ReadEnd): DraftEnd | undefined {
    const known = this.#nodes.get(node)
    if (known !== undefined) {
      const own = known.portOf(port)
      return { name: known.name, ...(own !== undefined && { port: own }) }
    }
    if (this.#hostNames.has(node) || node === 'host' || node === 'macvlan') {
      this.#hosts.delete(node)
      return this.#segment(part, port, { kind: 'cloud', device: port })
    }
    if (node === 'mgmt-net') return this.#segment(part, 'mgmt', { kind: 'nat' })
    throw part.error(`there is no node ${quoted(node)}${this.#hint(node)}`)
  }

  #segment(part: Part, name: string, fields: Fields): DraftEnd | undefined {
    const key = `${fields.kind} ${name}`
    const known = this.#segments.get(key)
    if (known !== undefined) return { name: known }
    if (fields.kind === 'cloud' && !isDevice(name)) {
      part.leaveOut(`the link is not imported: ${quoted(name)} is not a name of a device, which has 1 to 15 characters`)
      return undefined
    }
    part.leaveOut(
      fields.kind === 'nat'
        ? 'the management network becomes a nat'
        : `the device ${quoted(name)} of the host becomes a cloud: the device must exist, and using it requires a privilege`,
    )
    const own = this.draft.segment(part, name, fields)
    this.#segments.set(key, own)
    return { name: own }
  }

  /** `startup-config`: a path beside the lab file, or the text itself. */
  #configOf(node: Settings): string | { text: string } | undefined {
    const part = node.get('startup-config')
    const given = part?.textOrNone()
    if (part === undefined || given === undefined || given === '') return undefined
    for (const key of ['enforce-startup-config', 'suppress-startup-config']) node.get(key)
    const text = given.replaceAll('__clabNodeName__', node.name)
    if (text.includes('\n')) return { text }
    if (/^[a-z+]+:\/\//i.test(text)) part.leaveOut(`is not imported: download ${quoted(text)}, and name the file`)
    else if (isOutside(text))
      part.leaveOut(`is not imported: ${quoted(text)} is not in the directory of the topology; copy it there`)
    else if (this.#hasFile?.(text) === false)
      part.leaveOut(`is not imported: there is no text file ${quoted(text)} in the directory of the topology`)
    else return /^[./]/.test(text) ? text : `./${text}`
    return undefined
  }

  #hint(name: string): string {
    // A file with thousands of wrong names would take long.
    this.#hints += 1
    if (this.#hints > maxHints) return ''
    const hint = nearest(name, [...this.#nodes.keys()])
    return hint === undefined ? '' : `; did you mean ${quoted(hint)}?`
  }
}

/** `startup-delay`, as a condition: what comes after the node waits for it. */
function orderFields(node: Settings): Fields {
  const delay = node.get('startup-delay')
  const seconds = delay?.numberOrNone()
  if (delay === undefined || seconds === undefined || seconds <= 0) return {}
  delay.leaveOut(
    `a node does not delay its own start: instead, nodes that come "after" it wait until ${seconds} s after its start`,
  )
  return { ready: { after: `${Math.min(3600, seconds)}s` } }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a key must not have
const isLabel = (key: string, text: string) => /^[^\u0000-\u001f\u007f]{1,100}$/.test(key) && text.length <= 1000

/** The labels of a node, but for those of the map, and its group. */
function labelsOf(node: Settings): Fields {
  const own: Record<string, string> = {}
  for (const [key, part] of node.members('labels')) {
    if (key === 'graph-posX' || key === 'graph-posY') continue
    const text = part.textOrNone()
    if (key.startsWith('graph-')) part.leaveOut('is not imported: it belongs to another map')
    else if (text !== undefined && isLabel(key, text)) own[key] = text
    else if (text !== undefined) part.leaveOut('is not imported: it is too long for a label')
  }
  const group = node.get('group')?.textOrNone()
  if (group !== undefined && isLabel('group', group)) own.group ??= group
  return Object.keys(own).length === 0 ? {} : { labels: own }
}

/** Ports of an IOU router on all its adapters: 16 of four ports. */
const mostIouPorts = 64

/** The ports of an IOU router by their names: `Ethernet1/2` is port 6, as `eth6` is. */
function iouPorts(ports: ReadonlyMap<string, ReadEnd>): Map<string, number> {
  const numbers = new Map<string, number>()
  const others: string[] = []
  for (const name of ports.keys()) {
    const [, slot, port] = /^(?:e|et|eth|ethernet) ?(\d{1,2})\/([0-3])$/i.exec(name) ?? []
    const number =
      slot === undefined ? (name.includes('/') ? undefined : lastNumber(name)) : Number(slot) * 4 + Number(port)
    if (number !== undefined && number < mostIouPorts) numbers.set(name, number)
    else others.push(name)
  }
  const taken = new Set(numbers.values())
  let next = 1
  for (const name of others) {
    while (taken.has(next)) next += 1
    taken.add(next)
    numbers.set(name, Math.min(next, mostIouPorts - 1))
    ports
      .get(name)
      ?.part.leaveOut(
        `${quoted(name)} is not a name of a port of IOL, such as Ethernet0/1: it becomes e${Math.floor(next / 4)}/${next % 4}`,
      )
  }
  return numbers
}

/** The file of a disk or program that the user must give: its name says the kind and the version. */
function imageName(node: Settings, kind: string, extension: string): string {
  const part = node.get('image')
  const [, tag] = /:([\w][\w.-]{0,60})$/.exec(part?.textOrNone() ?? '') ?? []
  const name = `${kind}${tag === undefined || tag === 'latest' ? '' : `-${tag}`}.${extension}`.replaceAll(
    /[^\w.-]/g,
    '-',
  )
  part?.leaveOut(`a container image is not a disk: provide the disk of the system as ${name}`)
  return name
}

function leaveOutCommands(node: Settings): void {
  node.get('exec')?.leaveOut('is not imported: type the commands at the console, or put them into the image')
}

const units: Readonly<Record<string, number>> = { k: 2 ** -10, m: 1, g: 2 ** 10 }
function memoryOf(node: Settings): Fields {
  const part = node.get('memory')
  if (part === undefined) return {}
  const [, number, unit] = /^([\d.]+)\s*([kmg])i?b?$/i.exec(part.textOrNone() ?? '') ?? []
  const ram = Math.round(Number(number) * (units[unit?.toLowerCase() ?? ''] ?? Number.NaN))
  if (ram >= 1 && ram <= 1 << 24) return { ram }
  part.leaveOut(`is not imported: expected a size such as 2Gb, got ${quoted(part.value)}`)
  return {}
}

function processorsOf(node: Settings): Fields {
  const cpus = Math.ceil(node.get('cpu')?.numberOrNone() ?? 0)
  return cpus >= 1 && cpus <= 255 ? { cpus } : {}
}
