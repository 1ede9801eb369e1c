import { isUuid } from '../model/schema/fields.ts'

/** A JSON object of a document. */
type Members = Readonly<Record<string, unknown>>

/** The newest revision of documents that is read: that of GNS3 3.0, which changes names of nodes alone. */
export const newestRevision = 10
/** The first revision with the members that GNS3 has since 2.0. */
const firstNewRevision = 5
/** The first revision without configurations among the properties. */
const firstWithoutConfigs = 8

/** Whether a document has the form of GNS3 1.0 to 1.5, where nodes have a `type` and links name ports by their numbers. */
export const isOldForm = (revision: number | undefined): boolean =>
  revision === undefined || revision < firstNewRevision

/** Kinds of GNS3 1.x. Routers of dynamips have the name of their platform. */
const oldTypes: Readonly<Record<string, string>> = {
  VPCSDevice: 'vpcs',
  QemuVM: 'qemu',
  DockerVM: 'docker',
  VMwareVM: 'vmware',
  VirtualBoxVM: 'virtualbox',
  ...{
    IOUDevice: 'iou',
    EthernetSwitch: 'ethernet_switch',
    EthernetHub: 'ethernet_hub',
    Cloud: 'cloud',
    Host: 'cloud',
  },
  FrameRelaySwitch: 'frame_relay_switch',
  ATMSwitch: 'atm_switch',
  EtherSwitchRouter: 'dynamips',
}
const routers = /^c(1700|2600|2691|3600|3620|3640|3660|3725|3745|7200)$/i
/** The image of the machine that stood for the internet, which is the nat since 2.0. */
const internetSum = '8ebc5a6ec53a1c05b7aa101b5ceefe31'
const internetImage = /^core-linux-6\.4-internet-0\.1\.img$/

const record = (value: unknown): Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Members) : {}
const list = (value: unknown): readonly Members[] => (Array.isArray(value) ? value.map(record) : [])
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const integer = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) ? value : undefined

const idOf = (value: unknown): string | undefined => (typeof value === 'string' && isUuid(value) ? value : undefined)

/** The word for the kind of a node of GNS3 1.x, as GNS3 2.2 has it. Its own word for an unknown one. */
function typeOf(node: Members, properties: Members): string {
  const type = text(node.type) ?? text(properties.platform) ?? 'unknown'
  const isInternet =
    properties.hda_disk_image_md5sum === internetSum ||
    internetImage.test(fileName(text(properties.hda_disk_image) ?? ''))
  if (type === 'QemuVM' && isInternet) return 'nat'
  return Object.hasOwn(oldTypes, type) ? (oldTypes[type] as string) : routers.test(type) ? 'dynamips' : type
}

/** The last word of a path of any system. */
export const fileName = (path: string): string => path.split(/[/\\]/).at(-1) ?? path

/**
 * A node of GNS3 1.x as GNS3 2.2 has it: its kind, its name and position, and the ports of switches, hubs and clouds by number.
 * `node_id`: for one without an id.
 */
function newNode(old: Members, node_id: string): Members {
  const {
    console: port,
    name,
    console_type,
    console_host: _,
    use_ubridge: __,
    nios: ___,
    ...rest
  } = record(old.properties)
  const node_type = typeOf(old, rest)
  const ports = list(old.ports)
  const number = (value: unknown) => Math.round(typeof value === 'number' ? value : 0)
  return {
    node_id: idOf(old.vm_id) ?? node_id,
    node_type,
    name: text(record(old.label).text) ?? text(name) ?? `${node_type}-${integer(old.id) ?? 0}`,
    ...(text(console_type) !== undefined && { console_type: console_type === 'serial' ? 'telnet' : console_type }),
    ...(integer(port) !== undefined && { console: port }),
    x: number(old.x),
    y: number(old.y),
    z: number(old.z ?? 1),
    symbol: text(old.symbol) ?? text(old.default_symbol)?.replace(/\.normal\.svg$/, '.svg') ?? '',
    ...Object.fromEntries(
      ['port_name_format', 'port_segment_size', 'first_port_name']
        .filter((key) => old[key] !== undefined)
        .map((key) => [key, old[key]]),
    ),
    properties: {
      ...withoutOldSettings(node_type, rest),
      ...propertiesFor(node_type, old, rest),
      ...mappingOf(node_type, ports),
    },
  }
}

/** The platform of an emulator, by the name of its program. */
export const platformOf = (qemu_path: unknown): string | undefined =>
  /qemu-system-(\w+?)w?(?:\.exe)?$/i.exec(text(qemu_path) ?? '')?.[1]

/** What a kind has in addition. */
function propertiesFor(node_type: string, old: Members, properties: Members): Members {
  if (node_type === 'virtualbox' || node_type === 'vmware') return { linked_clone: old.linked_clone === true }
  if (node_type === 'qemu' && properties.platform === undefined) {
    const platform = platformOf(properties.qemu_path)
    return platform === undefined ? {} : { platform }
  }
  if (node_type !== 'dynamips' || properties.platform !== undefined) return {}
  const type = (text(old.type) ?? '').toLowerCase()
  return routers.test(type) ? { platform: type.startsWith('c36') ? 'c3600' : type } : { platform: 'c3725' }
}

/** The ports of a switch, a hub or a cloud. Those of switches and hubs count from 1 in GNS3 1.x. */
function mappingOf(node_type: string, ports: readonly Members[]): Members {
  const { length } = ports
  if (length === 0) return {}
  if (node_type === 'cloud')
    return {
      ports_mapping: ports.map((port, index) => {
        const [kind = '', name = ''] = (text(port.name) ?? '').split(':')
        const type = kind === 'nio_tap' ? 'tap' : /^nio_gen_/.test(kind) ? 'ethernet' : kind
        return {
          port_number: integer(port.port_number) ?? index,
          name,
          type,
          ...(type !== kind && { interface: name }),
        }
      }),
    }
  if (node_type !== 'ethernet_switch' && node_type !== 'ethernet_hub') return {}
  return {
    ports_mapping: ports.map((port, index) => {
      const port_number = (integer(port.port_number) ?? index + 1) - 1
      const tagging = node_type === 'ethernet_switch' ? { type: port.type ?? 'access', vlan: port.vlan ?? 1 } : {}
      return { name: `Ethernet${port_number}`, port_number, ...tagging }
    }),
  }
}

/** Settings of older releases that mean nothing now. */
function withoutOldSettings(node_type: string, properties: Members): Members {
  const { acpi_shutdown, save_vm_state: _, enable_remote_console: __, ...rest } = properties
  if (!['qemu', 'vmware', 'virtualbox'].includes(node_type) || acpi_shutdown === undefined) return rest
  return { ...rest, on_close: acpi_shutdown === true ? 'save_vm_state' : 'power_off' }
}

/** An end of a link of GNS3 1.x: its adapter and port, by what its port says, or by the numbers in the name of the port. */
function endOf(node: Members, port: Members, index: number): { adapter_number: number; port_number: number } {
  const node_type = typeOf(node, record(node.properties))
  if (node_type === 'cloud') return { adapter_number: 0, port_number: integer(port.port_number) ?? index }
  const own = integer(port.port_number)
  if (node_type === 'ethernet_switch' || node_type === 'ethernet_hub')
    return { adapter_number: 0, port_number: (own ?? index + 1) - 1 }
  const [, first, second] = /(\d{1,4})(?:\/(\d{1,4}))?$/.exec(text(port.name) ?? '') ?? []
  const [slot, number] = second === undefined ? [undefined, first] : [first, second]
  const adapter = integer(port.adapter_number) ?? integer(port.slot_number)
  if (adapter !== undefined || own !== undefined || first === undefined)
    return { adapter_number: adapter ?? 0, port_number: own ?? 0 }
  // The adapters of a machine have one port each.
  const isMachine = ['qemu', 'vmware', 'virtualbox'].includes(node_type)
  return isMachine && slot === undefined
    ? { adapter_number: Number(number), port_number: 0 }
    : { adapter_number: Number(slot ?? 0), port_number: Number(number) }
}

/** The nodes and links of a topology of GNS3 1.x. */
export class OldTopology {
  /** By the numbers of node and port. */
  readonly #ends = new Map<string, { adapter_number: number; port_number: number }>()
  readonly #ids = new Map<unknown, string>()
  readonly #used = new Set<string>()

  /** The node as GNS3 2.2 has it. `spareId`: its id, where it has none, or that of another node. */
  newNode(old: Members, spareId: string): Members {
    const node = newNode(old, spareId)
    const node_id = this.#used.has(String(node.node_id)) ? spareId : String(node.node_id)
    this.#used.add(node_id)
    this.#ids.set(old.id, node_id)
    for (const [index, port] of list(old.ports).entries())
      this.#ends.set(`${old.id} ${port.id}`, endOf(old, port, index))
    return { ...node, node_id }
  }

  /** A link as GNS3 2.2 has it. An end whose node or port is not there has an id that no node has. */
  newLink(old: Members, link_id: string): Members {
    const end = (side: string) => ({
      node_id: this.#ids.get(old[`${side}_node_id`]) ?? `${old[`${side}_node_id`]}`,
      ...(this.#ends.get(`${old[`${side}_node_id`]} ${old[`${side}_port_id`]}`) ?? {
        adapter_number: 0,
        port_number: 0,
      }),
    })
    return { link_id, nodes: [end('source'), end('destination')] }
  }
}

/**
 * A document of GNS3 1.0 to 3.0 with the members of 2.2. What is not an object in it is left as it is: the reader of the document says
 * what is wrong. `newId` gives ids of nodes, links and drawings that have none.
 */
export function newProject(document: unknown, newId: () => string): unknown {
  const project = record(document)
  const revision = integer(project.revision)
  const topology = record(project.topology)
  // A document of GNS3 1.x without a revision has its type.
  if (!isOldForm(revision) || (revision === undefined && project.type !== 'topology')) {
    const nodes = Array.isArray(topology.nodes)
      ? topology.nodes.map((node) => newerNode(node, revision))
      : topology.nodes
    return { ...project, topology: { ...topology, nodes } }
  }
  const old = new OldTopology()
  const nodes = list(topology.nodes).map((node) => old.newNode(node, newId()))
  const links = list(topology.links).map((link) => old.newLink(link, newId()))
  const drawings = drawingsOf(topology).map((drawing) => ({ drawing_id: newId(), ...drawing }))
  const { resources_type: _, ...settings } = project
  return { ...settings, revision: newestRevision, topology: { nodes, links, drawings, computes: [] } }
}

/** A node of a document of GNS3 2.0 to 3.0 as that of 2.2. */
function newerNode(value: unknown, revision = newestRevision): unknown {
  if (value === null || typeof value !== 'object') return value
  const node = value as Members
  const { appliance_id, ...rest } = node
  const type = text(node.node_type) ?? ''
  const properties = withoutOldSettings(type, record(node.properties))
  const isConfig = /^(startup|private)_(script|config)(_path|_content)?$/
  const own = Object.entries(properties).filter(([key]) => revision >= firstWithoutConfigs || !isConfig.test(key))
  return {
    ...rest,
    ...(node.template_id === undefined && appliance_id !== undefined && { template_id: appliance_id }),
    ...(node.console_type === 'serial' && { console_type: 'telnet' }),
    properties: Object.fromEntries(own),
  }
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const xml = (value: unknown): string =>
  String(value ?? '').replaceAll(/[&<>"]/g, (character) => escapes[character] as string)

/** The drawings of GNS3 1.x as SVG: notes, rectangles and ellipses. Pictures are files, which documents only name. */
function drawingsOf(topology: Members): Members[] {
  const place = (it: Members) => ({
    x: Math.round(Number(it.x) || 0),
    y: Math.round(Number(it.y) || 0),
    z: integer(it.z) ?? 0,
    rotation: integer(it.rotation) ?? 0,
  })
  const svg = (width: number, height: number, body: string) => `<svg width="${width}" height="${height}">${body}</svg>`
  const size = (it: Members): [number, number] => [
    Math.round(Number(it.width) || 100),
    Math.round(Number(it.height) || 100),
  ]
  const paint = (it: Members) =>
    `fill="${xml(it.color ?? '#ffffff')}" stroke="${xml(it.border_color ?? '#000000')}" stroke-width="${Number(it.border_width) || 2}"`
  const notes = list(topology.notes).map((it) => {
    const lines = String(it.text ?? '')
    const height = Number(String(it.font ?? '').split(',')[1]) || 10
    const colour = `#${String(it.color ?? '#000000').slice(-6)}`
    const body = `<text fill="${xml(colour)}" font-size="${height}">${xml(lines)}</text>`
    return { ...place(it), svg: svg(height * lines.length, height * 2, body) }
  })
  const rectangles = list(topology.rectangles).map((it) => {
    const [width, height] = size(it)
    return { ...place(it), svg: svg(width, height, `<rect width="${width}" height="${height}" ${paint(it)}/>`) }
  })
  const ellipses = list(topology.ellipses).map((it) => {
    const [width, height] = size(it)
    const shape = `<ellipse cx="${width / 2}" cy="${height / 2}" rx="${width / 2}" ry="${height / 2}" ${paint(it)}/>`
    return { ...place(it), svg: svg(width, height, shape) }
  })
  return [...rectangles, ...ellipses, ...notes]
}
