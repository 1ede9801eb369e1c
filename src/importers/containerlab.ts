import { isOutside } from '../labfile/files.ts'
import { labName } from '../labfile/names.ts'
import type { Fields } from '../labfile/text.ts'
import { nearest } from '../lib/text/nearest-word.ts'
import { maxAdapters } from '../model/kinds/machine-emulator.ts'
import type { NodeOrigin } from './checked.ts'
import { readContainer } from './containerlab-containers.ts'
import { becomes, isContainerKind, knownKinds } from './containerlab-kinds.ts'
import { iouPorts, portsOf, type ReadEnd, type ReadLink, readLink } from './containerlab-links.ts'
import { managedFields, managementKeys, networkFields } from './containerlab-management.ts'
import {
  because,
  imageName,
  labelsOf,
  leaveOutCommands,
  memoryOf,
  NodeSettings,
  orderFields,
  placeholderImage,
  processorsOf,
} from './containerlab-nodes.ts'
import {
  byNumbers,
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
import type { FilesAt } from './files-beside.ts'
import { guestCommandLine, type LinuxSetup, linuxSetup, pcScript } from './linux-commands.ts'
import { type MachineModelName, machineModel } from './machines.ts'
import { type Part, quoted, type Source } from './source.ts'

/** Whether a text file is in the directory of a foreign lab, or below it. */
export type HasFile = (path: string) => boolean

/** Positions on the map by the name of the node. */
export type MapPositions = ReadonlyMap<string, readonly [x: number, y: number]>

export interface ContainerlabInput {
  readonly positions?: MapPositions | undefined
  /** Whether a file is in the directory of the topology, and may be a configuration. Absent: it is not known. */
  readonly hasFile?: HasFile | undefined
  /** The files in the directory of the topology: containers begin with those of their binds. Absent: they are not known. */
  readonly filesAt?: FilesAt | undefined
}

/** The topology of a lab of containerlab (*.clab.yml) as a lab file. 400 when nothing of it can be made. */
export function importContainerlab(source: Source, input: ContainerlabInput = {}): ConvertedLab {
  const { root } = source
  const topology = root.get('topology')
  if (topology.isAbsent) throw root.error('topology is missing: this is not a topology of containerlab')
  const lab = root.get('name').textOrNone() ?? 'lab'
  // The prefix is of the names of containers.
  root.get('prefix')
  // It is read with the nodes.
  const network = root.get('mgmt')
  root.leaveOutUnread(because)

  const links = topology
    .get('links')
    .itemsOrNone()
    .flatMap((link) => link.attempt(readLink) ?? [])
  const topologyReader = new TopologyReader(topology, portsOf(links), network, input)
  topologyReader.addNodes()
  topologyReader.draft.requireNodes()
  topologyReader.addManagement()
  for (const link of links) link.part.attempt(() => topologyReader.addLink(link))
  topologyReader.leaveOutUnread()
  return topologyReader.draft.finish(labName(lab), { source })
}

/** The positions of a file `*.annotations.json`, which the editor of containerlab keeps beside a topology. */
export function positionsOf({ root }: Source): MapPositions {
  const annotations = root.asObject().get('nodeAnnotations').itemsOrNone()
  return new Map(
    annotations.flatMap((annotation) => {
      const position = annotation.asObject().get('position').asObject()
      const [x, y] = ['x', 'y'].map((key) => position.get(key).numberOrNone())
      const id = annotation.asObject().get('id').textOrNone()
      return x === undefined || y === undefined || id === undefined ? [] : [[id, [x, y] as const] as const]
    }),
  )
}

/** Adds a node to the draft: with how its ports are named there, and what it was. */
type AddNode = (
  fields: Fields,
  more?: Omit<NodeOrigin, 'from'> & { readonly portOf?: (port: string) => string | undefined },
) => void

/** Why a container of a vendor cannot run. */
const onlyOrdinary = 'it is a container of its vendor, and only ordinary ones (of the kind linux) can run here yet'

/** Names that are not known for which the nearest one is searched. */
const maxHints = 20

class TopologyReader {
  readonly draft = new Draft({ bridgesPassTags: true })
  readonly #topology: Part
  readonly #positions: MapPositions
  readonly #ports: ReadonlyMap<string, ReadonlyMap<string, ReadEnd>>
  readonly #network: Part
  /** Whether the topology says something of its management network. */
  #isManaged = false
  readonly #hasFile: HasFile | undefined
  readonly #filesAt: FilesAt | undefined
  /** The sections that nodes take settings from, by their path. */
  readonly #sections = new Map<string, Part>()
  /** By the name in the topology: the name in the lab file, and how a port is named there. */
  readonly #nodes = new Map<string, { name: string; fields: Fields; portOf: (port: string) => string | undefined }>()
  /** Nodes that stand for the host and that no link uses yet. */
  readonly #hosts = new Map<string, NodeSettings>()
  readonly #hostNames = new Set<string>()
  #hints = 0
  readonly #segments = new Map<string, string>()

  constructor(
    topology: Part,
    ports: ReadonlyMap<string, ReadonlyMap<string, ReadEnd>>,
    network: Part,
    { positions = new Map(), hasFile, filesAt }: ContainerlabInput,
  ) {
    this.#topology = topology
    this.#positions = positions
    this.#ports = ports
    this.#network = network
    this.#hasFile = hasFile
    this.#filesAt = filesAt
  }

  addNodes(): void {
    const part = this.#topology.get('nodes')
    if (part.isAbsent) throw this.#topology.error('nodes is missing')
    const nodes = part.entries().flatMap(([name, it]) => this.draft.readNode(it, () => this.#settings(name, it)) ?? [])
    const says = (node: NodeSettings) => managementKeys.some((key) => node.has(key))
    this.#isManaged = !this.#network.isAbsent || nodes.some(says)
    for (const node of nodes) this.draft.readNode(node.part, () => this.#addNode(node))
    for (const node of nodes) this.#addOrder(node)
  }

  addLink({ part, ends: [first, second] }: ReadLink): void {
    if (first === undefined || second === undefined) return
    const [a, b] = [this.#end(first), this.#end(second)]
    if (a !== undefined && b !== undefined) this.draft.link(part, a, b)
  }

  /** The management network, if the topology says something of it. */
  addManagement(): void {
    if (this.#isManaged)
      this.draft.management(this.#network.isAbsent ? this.#topology : this.#network, networkFields(this.#network))
  }

  leaveOutUnread(): void {
    for (const section of this.#sections.values()) section.leaveOutUnread(because)
    for (const { part } of this.#hosts.values()) part.leaveOut('is not imported: no link uses it')
    for (const group of ['kinds', 'groups'])
      for (const [name, part] of this.#topology.get(group).asObject().entries())
        if (!this.#sections.has(`${group}/${name}`)) part.leaveOut('is not imported: no node uses it')
    this.#topology.leaveOutUnread(because)
  }

  #settings(name: string, part: Part): NodeSettings {
    const own = this.#section(`nodes/${name}`, part)
    const defaults = this.#section('defaults', this.#topology.get('defaults'))
    const named = (group: string, key: string | undefined): Part[] =>
      key === undefined ? [] : [this.#section(`${group}/${key}`, this.#topology.get(group).asObject().get(key))]
    const groups = named('groups', own.get('group').textOrNone() ?? defaults.get('group').textOrNone())
    const [kind] = [own, ...groups, defaults].map((it) => it.get('kind')).filter((it) => !it.isAbsent)
    return new NodeSettings(name, part, [own, ...groups, ...named('kinds', kind?.textOrNone()), defaults])
  }

  /** The same object for the same path, so that it knows what was read of it. */
  #section(path: string, part: Part): Part {
    const known = this.#sections.get(path) ?? part.asObject()
    this.#sections.set(path, known)
    return known
  }

  #addNode(node: NodeSettings): void {
    const kind = node.get('kind')
    const word = kind?.textOrNone() ?? ''
    const what = becomes(word)
    const ports = this.#ports.get(node.name) ?? new Map<string, ReadEnd>()
    const mapFields: Fields = { ...this.#at(node), ...orderFields(node) }
    const add: AddNode = (fields, { portOf = (port: string) => port, ...origin } = {}) => {
      const ready = [mapFields.ready, fields.ready].filter((field) => field !== undefined)
      const all = {
        ...(this.#isManaged ? managedFields(node, fields, ports) : fields),
        ...mapFields,
        ...labelsOf(node),
        ...(ready.length > 0 && { ready: ready.length > 1 ? ready : ready[0] }),
      }
      const name = this.draft.node(node.part, node.name, all, { from: word, ...origin })
      this.#nodes.set(node.name, { name, fields: all, portOf })
    }
    if (what === 'host') {
      this.#hosts.set(node.name, node)
      this.#hostNames.add(node.name)
      return
    }
    if (what === 'switch') {
      kind?.change(`${word}: a bridge of the host becomes a switch of the lab`)
      const name = this.draft.segment(node.part, node.name, { kind: 'switch', ...this.#at(node) })
      this.#nodes.set(node.name, { name, fields: {}, portOf: () => undefined })
      return
    }
    if (what === 'linux') {
      const image = node.all('image').find((part) => part.textOrNone()?.trim())
      return image === undefined ? this.#addHost(node, ports, add) : this.#addContainer(node, image, ports, add)
    }
    if (what === 'iou') {
      const numbers = iouPorts(ports)
      const image = imageName(node, word, 'bin')
      const config = this.#configOf(node)
      const slots = [...numbers.values()].map((it) => Math.floor(it / 4) + 1)
      add(
        {
          kind: 'iou',
          image,
          ethernet_adapters: Math.max(1, ...slots),
          serial_adapters: 0,
          ...(config !== undefined && { config }),
        },
        { portOf: (port) => `e${Math.floor((numbers.get(port) ?? 0) / 4)}/${(numbers.get(port) ?? 0) % 4}` },
      )
      return
    }
    if (what === 'placeholder') return this.#addPlaceholder(node, word, ports, add)
    this.#addMachine(node, { word, model: what.model, ports, add })
  }

  /** A node that cannot run, with the ports that its links name. */
  #addPlaceholder(node: NodeSettings, word: string, ports: ReadonlyMap<string, ReadEnd>, add: AddNode): void {
    const parts = [...ports].map(([port, { part }]) => [port, part] as const)
    const isManagement = (port: string) => (/^eth\d+$/.test(port) ? lastNumber(port) : undefined)
    const inOrder = new Map(parts.toSorted(([one], [other]) => byNumbers(one, other)))
    const { adapters, names } = namedPorts(inOrder, isManagement, maxAdapters)
    for (const key of ['exec', 'memory', 'cpu', 'type', 'license', 'startup-config'])
      node.get(key)?.leaveOut('is not imported: the node cannot run here')
    add(
      {
        ...machineModel('placeholder').fields,
        image: placeholderImage(node, word === '' ? 'unknown' : word, 'qcow2'),
        adapters: Math.max(adapters, 1),
        ...(names !== undefined && { ports: names }),
      },
      { cannotRun: this.#whyNot(word) },
    )
  }

  #whyNot(word: string): string {
    if (word === '') return 'its kind is missing, expected one such as linux'
    if (isContainerKind(word)) return onlyOrdinary
    this.#hints += 1
    const hint = this.#hints > maxHints ? undefined : nearest(word, knownKinds)
    return `the kind ${quoted(word)} is not known${hint === undefined ? '' : `, did you mean ${quoted(hint)}?`}`
  }

  #addMachine(
    node: NodeSettings,
    {
      word,
      model,
      ports,
      add,
    }: {
      word: string
      model: MachineModelName
      ports: ReadonlyMap<string, ReadEnd>
      add: AddNode
    },
  ): void {
    const { fields, firstPort = 1, day0, ready, warning } = machineModel(model)
    if (warning !== undefined) node.get('kind')?.change(`${word}: ${warning}`)
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

  #addContainer(node: NodeSettings, image: Part, ports: ReadonlyMap<string, ReadEnd>, add: AddNode): void {
    const count = (part: Part, values: number) => this.draft.count(part, values)
    const { fields, hint, portOf } = readContainer(node, { image, ports, filesAt: this.#filesAt, count })
    add(fields, { portOf, ...(hint !== undefined && { hint }) })
  }

  /** A Linux host without an image: a pc when it has one link at most, else a guest of examples/guests. */
  #addHost(node: NodeSettings, ports: ReadonlyMap<string, ReadEnd>, add: AddNode): void {
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
    const isRouter = read.others.some((it) => it.includes('ip_forward'))
    for (const key of ['memory', 'cpu', 'startup-config']) node.get(key)?.leaveOut(because(key))
    if (ports.size <= 1 && !isRouter) {
      const text = pcScript(setup, note)
      add({ kind: 'pc', ...(text !== '' && { config: { text } }) }, { portOf: () => undefined })
      return
    }
    const initrd = isRouter ? 'frr.img' : 'busybox.img'
    const parts = new Map([...ports].map(([port, { part }]) => [port, part]))
    const { adapters, names } = namedPorts(parts, lastNumber, maxAdapters)
    add(
      {
        kind: 'machine-emulator',
        platform: 'x86_64',
        ram: isRouter ? 192 : 128,
        adapters,
        adapter_type: 'virtio-net-pci',
        kernel_image: 'vmlinuz',
        initrd,
        kernel_command_line: guestCommandLine(node.name, setup, note),
        ...(names !== undefined && { ports: names }),
        ready: { console: '# ' },
      },
      { hint: `examples/guests/make.sh makes vmlinuz and ${initrd}` },
    )
  }

  #at(node: NodeSettings): Fields {
    const labels = node.members('labels')
    this.draft.count(node.part, labels.size)
    const [x, y] = ['graph-posX', 'graph-posY'].map((key) => labels.get(key)?.numberOrNone())
    const at = x !== undefined && y !== undefined ? [x, y] : this.#positions.get(node.name)
    return at === undefined ? {} : { at: mapPosition(at) }
  }

  /** `stages` and `wait-for`: nodes that must be ready before this one starts. */
  #addOrder(node: NodeSettings): void {
    const waits: { part: Part; name: string }[] = []
    const addWait = (part: Part, name: Part) => {
      const text = name.attempt((value) => value.text())
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
    part.change(
      fields.kind === 'nat'
        ? 'the management network becomes a nat'
        : `the device ${quoted(name)} of the host becomes a cloud: the device must exist, and using it requires a privilege`,
    )
    const own = this.draft.segment(part, name, fields)
    this.#segments.set(key, own)
    return { name: own }
  }

  /** `startup-config`: a path beside the lab file, or the text itself. */
  #configOf(node: NodeSettings): string | { text: string } | undefined {
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
