import { nearest } from '../http/nearest-word.ts'
import { maxAdapters } from '../kinds/machine-emulator.ts'
import { labName } from '../labfile/names.ts'
import type { Fields } from '../labfile/text.ts'
import { becomes, knownKinds } from './containerlab-kinds.ts'
import { cdOf, Draft, type DraftEnd, type ImportedLab, lastNumber, mapPosition, namedPorts } from './draft.ts'
import { guestCommandLine, type LinuxSetup, linuxSetup, pcScript } from './linux-commands.ts'
import { type MachineModelName, machineModel } from './machines.ts'
import { type Part, quoted, type Source } from './source.ts'

/** Positions on the map by the name of the node. */
export type Positions = ReadonlyMap<string, readonly [x: number, y: number]>

/** Why settings are left out, by their names. */
const reasons: Readonly<Record<string, string>> = {
  ...{ binds: 'a node has no files of the host', license: 'put it into the image, or give it at the console' },
  ...{ ports: 'a nat publishes ports (port_forwards)', type: 'the image says which model the machine is' },
  ...{ config: 'there are no templates of configurations', mtu: 'set it in the nodes' },
  ...{ 'mgmt-ipv4': 'there is no management network', 'mgmt-ipv6': 'there is no management network' },
  ...Object.fromEntries(
    ['env', 'env-files', 'cmd', 'entrypoint', 'user', 'runtime', 'network-mode', 'restart-policy', 'auto-remove'].map(
      (key) => [key, 'it is of containers'],
    ),
  ),
}
const because = (key: string): string => `is not taken over${reasons[key] === undefined ? '' : `: ${reasons[key]}`}`

/** The topology of a lab of containerlab (*.clab.yml) as a lab file. 400 for one that is none. */
export function importContainerlab(source: Source, positions: Positions = new Map()): ImportedLab {
  const { root } = source
  const topology = root.get('topology')
  if (topology.isAbsent) throw root.fault('topology is missing: this is no topology of containerlab')
  const lab = root.get('name').text()
  // The prefix is of the names of containers.
  root.get('prefix')
  const management = root.get('mgmt')
  if (!management.isAbsent)
    management.leaveOut('is not taken over: there is no management network, nodes have consoles')
  root.leaveOutUnread(because)

  const links = topology.get('links').items().map(readLink)
  const topologyReader = new TopologyReader(topology, positions, portsOf(links))
  topologyReader.addNodes()
  for (const link of links) topologyReader.addLink(link)
  topologyReader.leaveOutUnread()
  return topologyReader.draft.finish(labName(lab), { leftOut: source.leftOut })
}

/** The positions of a file `*.annotations.json`, which the editor of containerlab keeps beside a topology. */
export function positionsOf({ root }: Source): Positions {
  const annotations = root.get('nodeAnnotations').items()
  return new Map(
    annotations.flatMap((it) => {
      const [x, y] = [it.get('position').get('x').optionalNumber(), it.get('position').get('y').optionalNumber()]
      return x === undefined || y === undefined ? [] : [[it.get('id').text(), [x, y] as const] as const]
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

interface ReadLink {
  readonly part: Part
  readonly ends: readonly [ReadEnd, ReadEnd]
}

/** What is outside of the nodes of a topology, by the name that it has as an end of a link. */
const outsides = ['host', 'mgmt-net', 'macvlan', 'vxlan', 'vxlan-stitch', 'dummy'] as const
const isOutside = (name: string): name is (typeof outsides)[number] => (outsides as readonly string[]).includes(name)

function readLink(link: Part): ReadLink {
  const typePart = link.get('type')
  const type = typePart.optionalText() ?? 'veth'
  const read = (): [ReadEnd, ReadEnd] => {
    if (type === 'veth') {
      const part = link.get('endpoints')
      const ends = part.items().map(readEnd)
      const [first, second] = ends
      if (first !== undefined && second !== undefined && ends.length === 2) return [first, second]
      throw (part.isAbsent ? link : part).fault('expected two endpoints, such as ["r1:eth1", "r2:eth1"]')
    }
    if (!isOutside(type)) {
      const hint = nearest(type, ['veth', ...outsides])
      throw typePart.fault(`unknown type ${quoted(type)}${hint === undefined ? '' : `; did you mean ${quoted(hint)}?`}`)
    }
    const device = link.get('host-interface').optionalText() ?? ''
    return [readEnd(link.get('endpoint')), { part: link, node: type, port: device, addresses: [] }]
  }
  const ends = read()
  link.leaveOutUnread(because)
  return { part: link, ends }
}

function readEnd(part: Part): ReadEnd {
  if (part.isObject) {
    const [node, port] = [part.get('node').text(), part.get('interface').text()]
    const addresses = [part.get('ipv4').optionalText(), part.get('ipv6').optionalText()]
    part.leaveOutUnread(because)
    return { part, node, port, addresses: addresses.filter((it) => it !== undefined) }
  }
  const [, node, port] = /^([^:]+):(.+)$/s.exec(part.text()) ?? []
  if (node === undefined || port === undefined)
    throw part.fault(`expected an endpoint such as "r1:eth1", got ${quoted(part.value)}`)
  return { part, node, port, addresses: [] }
}

/** By node and port: the end of a link that names the port first. */
function portsOf(links: readonly ReadLink[]): Map<string, Map<string, ReadEnd>> {
  const ports = new Map<string, Map<string, ReadEnd>>()
  for (const end of links.flatMap(({ ends }) => ends)) {
    const own = ports.get(end.node) ?? new Map<string, ReadEnd>()
    ports.set(end.node, own)
    if (own.has(end.port)) throw end.part.fault(`${end.node}:${end.port} has two links`)
    own.set(end.port, end)
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
    const all = this.#sections.flatMap((section) => section.get(key).entries())
    return new Map(all.reverse())
  }
}

class TopologyReader {
  readonly draft = new Draft({ bridgesPassTags: true })
  readonly #topology: Part
  readonly #positions: Positions
  readonly #ports: ReadonlyMap<string, ReadonlyMap<string, ReadEnd>>
  /** The sections that nodes take settings from, by their path. */
  readonly #sections = new Map<string, Part>()
  /** By the name in the topology: the name in the lab file, and how a port is named there. */
  readonly #nodes = new Map<string, { name: string; fields: Fields; portOf: (port: string) => string | undefined }>()
  readonly #hosts = new Set<string>()
  readonly #segments = new Map<string, string>()

  constructor(topology: Part, positions: Positions, ports: ReadonlyMap<string, ReadonlyMap<string, ReadEnd>>) {
    this.#topology = topology
    this.#positions = positions
    this.#ports = ports
  }

  addNodes(): void {
    const part = this.#topology.get('nodes')
    if (part.isAbsent) throw this.#topology.fault('nodes is missing')
    const nodes = part.entries().map(([name, it]) => this.#settings(name, it))
    for (const node of nodes) this.#addNode(node)
    for (const node of nodes) this.#addOrder(node)
  }

  addLink({ part, ends: [first, second] }: ReadLink): void {
    const [a, b] = [this.#end(first), this.#end(second)]
    if (a !== undefined && b !== undefined) this.draft.link(part, a, b)
  }

  leaveOutUnread(): void {
    for (const section of this.#sections.values()) section.leaveOutUnread(because)
    for (const group of ['kinds', 'groups'])
      for (const [name, part] of this.#topology.get(group).entries())
        if (!this.#sections.has(`${group}/${name}`)) part.leaveOut('is not taken over: no node uses it')
    this.#topology.leaveOutUnread(because)
  }

  #settings(name: string, part: Part): Settings {
    const own = this.#section(`nodes/${name}`, part)
    const defaults = this.#section('defaults', this.#topology.get('defaults'))
    const named = (group: string, key: string | undefined): Part[] =>
      key === undefined ? [] : [this.#section(`${group}/${key}`, this.#topology.get(group).get(key))]
    const groups = named('groups', own.get('group').optionalText() ?? defaults.get('group').optionalText())
    const [kind] = [own, ...groups, defaults].map((it) => it.get('kind')).filter((it) => !it.isAbsent)
    if (kind === undefined) throw part.fault('kind is missing, expected one such as linux')
    return new Settings(name, part, [own, ...groups, ...named('kinds', kind.text()), defaults])
  }

  /** The same object for the same path, so that it knows what was read of it. */
  #section(path: string, part: Part): Part {
    const known = this.#sections.get(path) ?? part
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
      this.#hosts.add(node.name)
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
      const numbers = [...ports.keys()].map((port) => lastNumber(port) ?? 0)
      const image = imageName(node, word, 'bin')
      const config = configOf(node)
      add(
        {
          ...{ kind: 'iou', image, ethernet_adapters: Math.max(1, ...numbers.map((it) => Math.floor(it / 4) + 1)) },
          ...{ serial_adapters: 0, ...(config !== undefined && { config }) },
        },
        (port) => `e${Math.floor((lastNumber(port) ?? 0) / 4)}/${(lastNumber(port) ?? 0) % 4}`,
      )
      return
    }
    const { model, isKnown } = what
    if (!isKnown) {
      const hint = nearest(word, knownKinds)
      kind.leaveOut(
        `the kind ${quoted(word)} is not known${hint === undefined ? '' : `, did you mean ${quoted(hint)}?`}; it becomes a machine`,
      )
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
    const config = configOf(node)
    if (config !== undefined && day0 === undefined)
      node
        .get('startup-config')
        ?.leaveOut('is not taken over: this machine reads no configuration from a CD, type it at its console')
    for (const { part, addresses } of ports.values())
      if (addresses.length > 0)
        part.leaveOut(`the addresses ${addresses.join(', ')} are not taken over: set them in the machine`)
    leaveOutCommands(node)
    add({
      ...fields,
      image: imageName(node, word, 'qcow2'),
      ...memoryOf(node),
      ...processorsOf(node),
      adapters: Math.max(adapters, 1),
      ...(names !== undefined && { ports: names }),
      ...(config !== undefined &&
        day0 !== undefined && { day0: { label: day0.label, files: cdOf(day0.file, config) } }),
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
    const read = linuxSetup((exec?.items() ?? []).map((it) => it.text()))
    // The guest that is a router forwards anyway.
    const others = read.others.filter((it) => !/\bip_forward\b.*1$|\bforwarding\b.*1$/.test(it))
    const setup: LinuxSetup = { ...read, others, addresses: [...given, ...read.addresses] }
    const note = (message: string) => (exec ?? node.part).leaveOut(message)
    const forwards = read.others.some((it) => it.includes('ip_forward'))
    const isRouter = forwards || /(^|\/)frr/i.test(image?.optionalText() ?? '')
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
    const [x, y] = ['graph-posX', 'graph-posY'].map((key) => labels.get(key)?.optionalNumber())
    const at = x !== undefined && y !== undefined ? [x, y] : this.#positions.get(node.name)
    return at === undefined ? {} : { at: mapPosition(at) }
  }

  /** `stages` and `wait-for`: nodes that must be ready before this one starts. */
  #addOrder(node: Settings): void {
    const waits = (node.get('wait-for')?.items() ?? []).map((part) => ({ part, name: part.text() }))
    for (const [, stage] of node.get('stages')?.entries() ?? []) {
      for (const part of stage.get('wait-for').items()) {
        waits.push({ part, name: part.get('node').text() })
        part.get('stage')
      }
      stage.leaveOutUnread(because)
    }
    const own = this.#nodes.get(node.name)
    const after = new Set<string>()
    for (const { part, name } of waits) {
      const other = this.#nodes.get(name)
      if (other === undefined) throw part.fault(`there is no node ${quoted(name)}${this.#hint(name)}`)
      if (own === undefined || this.draft.isSegment(own.name) || this.draft.isSegment(other.name))
        part.leaveOut('is not taken over: a segment has no order')
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
    if (this.#hosts.has(node) || node === 'host') return this.#segment(part, port, { kind: 'cloud', device: port })
    if (node === 'macvlan') return this.#segment(part, port, { kind: 'cloud', device: port })
    if (node === 'mgmt-net') return this.#segment(part, 'mgmt', { kind: 'nat' })
    if (isOutside(node)) {
      part.leaveOut(`the link is not taken over: there are no links of type ${node}`)
      return undefined
    }
    throw part.fault(`there is no node ${quoted(node)}${this.#hint(node)}`)
  }

  #segment(part: Part, name: string, fields: Fields): DraftEnd {
    const known = this.#segments.get(name)
    if (known !== undefined) return { name: known }
    part.leaveOut(
      fields.kind === 'nat'
        ? 'the management network becomes a nat'
        : `the device ${quoted(name)} of the host becomes a cloud: it must be there, and needs a privilege`,
    )
    const own = this.draft.segment(part, name, fields)
    this.#segments.set(name, own)
    return { name: own }
  }

  #hint(name: string): string {
    const hint = nearest(name, [...this.#nodes.keys()])
    return hint === undefined ? '' : `; did you mean ${quoted(hint)}?`
  }
}

/** `startup-delay`, as a condition: what comes after the node waits for it. */
function orderFields(node: Settings): Fields {
  const delay = node.get('startup-delay')
  const seconds = delay?.optionalNumber()
  if (delay === undefined || seconds === undefined || seconds <= 0) return {}
  delay.leaveOut(
    `a node does not wait by itself: it counts as ready ${seconds} s after its start, for nodes that come "after" it`,
  )
  return { ready: { after: `${Math.min(3600, seconds)}s` } }
}

/** The labels of a node, but for those of the map. */
function labelsOf(node: Settings): Fields {
  const own: Record<string, string> = {}
  for (const [key, part] of node.members('labels')) {
    if (key === 'graph-posX' || key === 'graph-posY') continue
    if (key.startsWith('graph-')) part.leaveOut('is not taken over: it is of another map')
    else if (!part.isAbsent) own[key] = part.text()
  }
  return Object.keys(own).length === 0 ? {} : { labels: own }
}

/** The file of a disk or program that the user must give: its name says the kind and the version. */
function imageName(node: Settings, kind: string, extension: string): string {
  const part = node.get('image')
  const [, tag] = /:([\w][\w.-]{0,60})$/.exec(part?.optionalText() ?? '') ?? []
  const name = `${kind}${tag === undefined || tag === 'latest' ? '' : `-${tag}`}.${extension}`.replaceAll(
    /[^\w.-]/g,
    '-',
  )
  part?.leaveOut(`a container image is no disk: give the disk of the system as ${name}`)
  return name
}

/** `startup-config`: a path beside the lab file, or the text itself. */
function configOf(node: Settings): string | { text: string } | undefined {
  const part = node.get('startup-config')
  const given = part?.optionalText()
  if (part === undefined || given === undefined || given === '') return undefined
  for (const key of ['enforce-startup-config', 'suppress-startup-config']) node.get(key)
  const text = given.replaceAll('__clabNodeName__', node.name)
  if (text.includes('\n')) return { text }
  if (/^[a-z+]+:\/\//i.test(text)) {
    part.leaveOut(`is not taken over: download ${quoted(text)}, and name the file`)
    return undefined
  }
  return /^[./]/.test(text) ? text : `./${text}`
}

function leaveOutCommands(node: Settings): void {
  node.get('exec')?.leaveOut('is not taken over: type the commands at the console, or put them into the image')
}

const units: Readonly<Record<string, number>> = { k: 2 ** -10, m: 1, g: 2 ** 10 }
function memoryOf(node: Settings): Fields {
  const part = node.get('memory')
  if (part === undefined) return {}
  const [, number, unit] = /^([\d.]+)\s*([kmg])i?b?$/i.exec(part.text()) ?? []
  const ram = Math.round(Number(number) * (units[unit?.toLowerCase() ?? ''] ?? Number.NaN))
  if (ram >= 1 && ram <= 1 << 24) return { ram }
  part.leaveOut(`is not taken over: expected a size such as 2Gb, got ${quoted(part.value)}`)
  return {}
}

function processorsOf(node: Settings): Fields {
  const cpus = Math.ceil(node.get('cpu')?.optionalNumber() ?? 0)
  return cpus >= 1 && cpus <= 255 ? { cpus } : {}
}
