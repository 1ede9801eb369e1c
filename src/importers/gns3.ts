import { Check } from '@sinclair/typebox/value'
import { labName } from '../labfile/names.ts'
import { isSegmentKind } from '../labfile/segment-kinds.ts'
import type { Fields } from '../labfile/text.ts'
import { quantityText } from '../labfile/units.ts'
import { interfacesPath } from '../model/kinds/container.ts'
import { maxBays } from '../model/kinds/iou.ts'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { kindOf } from '../model/kinds/node.ts'
import { imageProperties, kindOfWord } from '../model/lab/archive-words.ts'
import { isKnownKind } from '../model/lab/node.ts'
import { labSettings } from '../model/lab/project.ts'
import { isUuid } from '../model/schema/fields.ts'
import { consoleOptions } from './console-options.ts'
import { byNumbers, type ConvertedLab, Draft, type DraftEnd, isDevice, mapPosition } from './draft.ts'
import { dockerContainer } from './gns3-containers.ts'
import { machineModel } from './machines.ts'
import { fileName, isOldForm, newestRevision, OldTopology, platformOf } from './old-projects.ts'
import { type Part, quoted, type Source } from './source.ts'

/** Where GNS3 has the configuration of a node, below `project-files/{kind}`; `property` says that there is one. */
const configFiles: Readonly<
  Record<string, { readonly property: string; filesOf(id: string, properties: Fields): readonly string[] }>
> = {
  pc: { property: 'startup_script_path', filesOf: (id) => [`vpcs/${id}/startup.vpc`] },
  iou: {
    property: 'startup_config',
    filesOf: (id) => [`iou/${id}/startup-config.cfg`, `iou/${id}/initial-config.cfg`],
  },
  dynamips: {
    property: 'startup_config',
    filesOf: (id, { dynamips_id: number }) => [
      `dynamips/${id}/configs/i${number}_startup-config.cfg`,
      `dynamips/configs/i${number}_startup-config.cfg`,
    ],
  },
}

interface ReadNode {
  readonly name: string
  readonly endOf: (adapter: number, port: number, part: Part) => DraftEnd | undefined
  /** After the last link. */
  readonly finish?: () => void
}

/**
 * A project of GNS3 1.0 to 3.0 (*.gns3) as a lab file. `hasFile`: whether a file is beside it, such as
 * `project-files/vpcs/{node_id}/startup.vpc`. 400 when nothing of it can be made.
 */
export function importGns3(source: Source, hasFile: (path: string) => boolean = () => false): ConvertedLab {
  const { root } = source
  const revision = root.get('revision').numberOrNone()
  if (revision !== undefined && revision > newestRevision)
    root
      .get('revision')
      .change(`the file has a newer revision than ${newestRevision}: settings of newer revisions are unknown`)
  const { nodeParts, linkParts } = partsOf(root.get('topology'), revision)
  const draft = new Draft({ bridgesPassTags: false })
  const linked = linkedPorts(linkParts)
  const nodes = new Map<string, ReadNode | undefined>()
  for (const part of nodeParts) {
    draft.readNode(part, () => {
      const id = part.get('node_id').text()
      if (nodes.has(id)) throw part.get('node_id').error('two nodes have this id')
      nodes.set(id, undefined)
      nodes.set(id, readNode(draft, part, { hasFile, ports: [...(linked.get(id) ?? [])] }))
    })
  }
  if ([...nodes.values()].every((node) => node === undefined)) draft.requireNodes()
  for (const part of linkParts) part.attempt(() => addLink(draft, nodes, part))
  for (const node of nodes.values()) node?.finish?.()
  for (const [key, schema] of Object.entries(labSettings)) {
    const part = root.get(key)
    if (!part.isAbsent && JSON.stringify(part.value) !== JSON.stringify(schema.default ?? null))
      part.leaveOut('is not imported: a lab file has no such setting')
  }
  return draft.finish(labName(root.get('name').textOrNone() ?? 'lab'), { source })
}

/** The nodes and links of a topology with the members of GNS3 2.2. */
function partsOf(topology: Part, revision: number | undefined): { nodeParts: Part[]; linkParts: Part[] } {
  const [nodeParts, linkParts] = [topology.get('nodes').itemsOrNone(), topology.get('links').itemsOrNone()]
  for (const key of ['drawings', 'notes', 'rectangles', 'ellipses', 'images'])
    if (topology.get(key).itemsOrNone().length > 0)
      topology.get(key).leaveOut('is not imported: a lab file has no drawings')
  if (!isOldForm(revision)) return { nodeParts, linkParts }
  const old = new OldTopology()
  const objects = (parts: readonly Part[]) => parts.filter((part) => part.asObject().isObject)
  return {
    nodeParts: objects(nodeParts).map((part, index) => part.with(old.newNode(part.value as Fields, `node ${index}`))),
    linkParts: objects(linkParts).map((part) => part.with(old.newLink(part.value as Fields, ''))),
  }
}

/** The ports that links use, by the id of their node, as `adapter/port`. */
function linkedPorts(linkParts: readonly Part[]): ReadonlyMap<string, ReadonlySet<string>> {
  const ports = new Map<string, Set<string>>()
  const ends = linkParts.map((part) => part.value).flatMap((link) => (link as { nodes?: unknown } | null)?.nodes ?? [])
  for (const end of ends) {
    const { node_id, adapter_number = 0, port_number = 0 } = (end ?? {}) as Fields
    const [id, port] = [String(node_id), `${adapter_number}/${port_number}`]
    ports.set(id, (ports.get(id) ?? new Set()).add(port))
  }
  return ports
}

function readNode(
  draft: Draft,
  part: Part,
  { hasFile, ports }: { hasFile: (path: string) => boolean; ports: readonly string[] },
): ReadNode {
  const word = part.get('node_type').text()
  const kind = kindOfWord(word)
  const label = part.get('name')
  const name = label.textOrNone() ?? word
  const container = word === 'docker' ? readContainer(draft, part, { name, hasFile, ports }) : undefined
  if (container !== undefined) return container
  if (word === 'docker' || !isKnownKind(kind)) return readPlaceholder(draft, part, { word, name, ports })
  const mapFields = mapFieldsOf(part, kind)
  if (isSegmentKind(kind)) return readSegment(draft, part, kind, { name, mapFields })
  const own = draft.node(
    label,
    name,
    {
      kind,
      ...propertiesOf(part, kind, word),
      ...configOf(part, kind, hasFile),
      ...portsOf(part),
      ...mapFields,
    },
    { from: word },
  )
  return { name: own, endOf: (adapter, port) => ({ name: own, ...portText(kind, adapter, port) }) }
}

/** A docker node as a container; undefined: it names no image. Its adapters have one port each. */
function readContainer(
  draft: Draft,
  part: Part,
  { name, hasFile, ports }: { name: string; hasFile: (path: string) => boolean; ports: readonly string[] },
): ReadNode | undefined {
  const id = part.get('node_id').text()
  const file = `project-files/docker/${id}/${interfacesPath}`
  const interfaces = isUuid(id) && hasFile(file) ? { file: `./${file}` } : undefined
  const settings = new Map([
    ...part.get('properties').asObject().entries(),
    ['console_type', part.get('console_type')] as const,
  ])
  const read = dockerContainer(settings, { links: ports.length, interfaces })
  if (read === undefined) return undefined
  const { symbol, ...mapFields } = mapFieldsOf(part, 'container')
  const fields = {
    kind: 'container',
    ...read.fields,
    ...mapFields,
    ...(symbol !== undefined && !/docker_guest\.svg$/.test(String(symbol)) && { symbol }),
  }
  const hint = read.hint === undefined ? {} : { hint: read.hint }
  const own = draft.node(part.get('name'), name, fields, { from: 'docker', ...hint })
  return {
    name: own,
    endOf: (adapter, port) => ({ name: own, port: port === 0 ? `eth${adapter}` : `${adapter}/${port}` }),
  }
}

/** A node that cannot run, with the ports that its links use. */
function readPlaceholder(
  draft: Draft,
  part: Part,
  { word, name, ports }: { word: string; name: string; ports: readonly string[] },
): ReadNode {
  const used = ports.toSorted(byNumbers)
  const image = word.replaceAll(/[^\w.-]/g, '-')
  const { fields, names } = serialSwitches.has(word) ? serialPlaceholder(image, used) : placeholder(image, used)
  const cannotRun = word === 'docker' ? 'it names no image' : `there is no kind ${quoted(word)} here`
  const all = { ...fields, ...mapFieldsOf(part, fields.kind) }
  const own = draft.node(part.get('name'), name, all, { from: word, cannotRun })
  return {
    name: own,
    endOf: (adapter, port) => ({ name: own, port: names[used.indexOf(`${adapter}/${port}`)] ?? `${adapter}/${port}` }),
  }
}

/** Switches of serial lines. */
const serialSwitches = new Set(['frame_relay_switch', 'atm_switch'])

/** A machine with a port for each of those that links use, and the names of these. */
function placeholder(image: string, used: readonly string[]) {
  // Only what tells them apart is in the names.
  const isAdapter = used.every((port) => port.endsWith('/0'))
  const nameOf = (port: string) => (isAdapter ? `eth${port.slice(0, -2)}` : `port${port.replace(/^0\//, '')}`)
  const names = used.map((port) => nameOf(port).replaceAll('/', '-'))
  const adapters = Math.max(1, names.length)
  const own = { kind: 'machine-emulator', image: `${image}.qcow2`, adapters }
  return { fields: { ...machineModel('placeholder').fields, ...own, ...(names.length > 0 && { ports: names }) }, names }
}

/** The same with serial ports, which a machine does not have. */
function serialPlaceholder(image: string, used: readonly string[]) {
  const names = used.map((_, index) => `${Math.floor(index / 4)}/${index % 4}`)
  const serial_adapters = Math.min(maxBays, Math.max(1, Math.ceil(used.length / 4)))
  return { fields: { kind: 'iou', image: `${image}.bin`, ethernet_adapters: 0, serial_adapters }, names }
}

/** The port of an end of a link: none for the only port of a pc. */
function portText(kind: string, adapter: number, port: number): { port?: string } {
  if (kind === 'pc') return {}
  return { port: kind === 'iou' || kind === 'dynamips' ? `${adapter}/${port}` : String(adapter) }
}

/** The properties that a node of the kind takes, but for those that have their defaults. */
function propertiesOf(part: Part, kind: string, word: string): Fields {
  const properties = part.get('properties').asObject()
  const { create, node } = kindOf(kind as Parameters<typeof kindOf>[0]) as KindDescriptor
  const record = Object.fromEntries(properties.entries().map(([key, it]) => [key, it.value]))
  const images = new Set(imageProperties({ node_type: kind, properties: record }))
  const fields: Fields = {}
  const consoleType = part.get('console_type')
  if (!consoleType.isAbsent && consoleType.value !== node.properties.console_type?.default) {
    const schema = create.properties.console_type
    if (schema !== undefined && Check(schema, consoleType.value)) fields.console_type = consoleType.value
    else consoleType.leaveOut(`is not imported: a ${kind} has no such console`)
  }
  for (const [key, it] of properties.entries()) {
    const schema = create.properties[key]
    const isComputed = /md5sum$/.test(key) || computed.has(key) || it.isAbsent || it.value === ''
    const isDefault = JSON.stringify(node.properties[key]?.default) === JSON.stringify(it.value)
    if (isComputed || isDefault || key === configFiles[kind]?.property) continue
    if (schema === undefined) it.leaveOut(`is not imported: a ${kind} has no such setting`)
    else if (key === 'options') Object.assign(fields, consoleOptions(it))
    else if (!Check(schema, it.value)) it.leaveOut(`is not imported: a ${kind} cannot have ${quoted(it.value)}`)
    else fields[imageKey(kind, key)] = images.has(key) ? imageText(it, record, key) : it.value
  }
  if (word === 'vmware') part.get('node_type').change('it becomes a VM of libvirt or VirtualBox with the same name')
  // GNS3 takes the platform of a machine that says none from its emulator, which is here that of the platform.
  if (word === 'qemu') fields.platform ??= platformOf(record.qemu_path) ?? 'x86_64'
  return fields
}

/** Properties that a compute chooses itself. */
const computed = new Set([
  ...['mac_address', 'mac_addr', 'application_id', 'dynamips_id', 'qemu_path', 'acpi_shutdown', 'legacy_networking'],
  ...['exec_area', 'mmap', 'sparsemem', 'auto_delete_disks', 'idlemax', 'idlesleep', 'clock_divisor', 'system_id'],
  ...['replicate_network_connection_state', 'save_vm_state', 'use_default_iou_values', 'private_config'],
])

/** The member `image` of a lab file is the main image of a kind. */
const imageKey = (kind: string, key: string): string =>
  (kind === 'machine-emulator' && key === 'hda_disk_image') || (kind === 'iou' && key === 'path') ? 'image' : key

/** The name of an image, with its digest where the document has it. A path of the other computer means nothing here. */
function imageText(part: Part, properties: Readonly<Record<string, unknown>>, key: string): string {
  const path = String(properties[key])
  const isPath = /^\/|\\|(^|\/)\.\.(\/|$)/.test(path)
  const name = isPath ? fileName(path) : path
  if (isPath) part.change(`${quoted(path)} is a path of another computer: the image is ${quoted(name)} here`)
  const sum = properties[`${key}_md5sum`] ?? (key === 'path' || key === 'image' ? properties.md5sum : undefined)
  const isMain = key === 'hda_disk_image' || key === 'path' || key === 'image'
  return isMain && typeof sum === 'string' && /^[0-9a-f]{32}$/i.test(sum) ? `${name}@md5:${sum.toLowerCase()}` : name
}

function configOf(part: Part, kind: string, hasFile: (path: string) => boolean): Fields {
  const properties = part.get('properties').asObject()
  const script = properties.get('startup_script').textOrNone()
  if (kind === 'pc' && script !== undefined && script !== '') return { config: { text: script } }
  const { filesOf, property } = configFiles[kind] ?? {}
  if (filesOf === undefined || property === undefined) return {}
  const id = part.get('node_id').text()
  const paths = isUuid(id) ? filesOf(id, (properties.value ?? {}) as Fields).map((path) => `project-files/${path}`) : []
  const path = paths.find((it) => hasFile(it))
  if (path !== undefined) return { config: `./${path}` }
  const named = properties.get(property)
  if (!named.isAbsent && named.value !== '')
    named.leaveOut(`is not imported: there is no file ${paths[0] ?? quoted(named.value)}`)
  return {}
}

/** Names of ports that are not those of the kind. */
function portsOf(part: Part): Fields {
  const format = part.get('port_name_format').textOrNone() ?? ''
  const [first, size] = [part.get('first_port_name'), part.get('port_segment_size').numberOrNone() ?? 0]
  if (!first.isAbsent && first.value !== '') first.leaveOut('is not imported: name all ports with "ports"')
  if (format === '' || format === 'Ethernet{0}') return {}
  if (size === 0 && /^[^{}]*\{0\}$/.test(format)) return { ports: format }
  part.get('port_name_format').leaveOut('is not imported: name the ports with "ports"')
  return {}
}

function mapFieldsOf(part: Part, kind: string): Fields {
  const [x, y] = ['x', 'y'].map((key) => part.get(key).numberOrNone())
  const symbol = part.get('symbol').textOrNone()
  const { gns3 } = kindOf(kind as Parameters<typeof kindOf>[0]) as KindDescriptor
  const isDefault = symbol === undefined || symbol === '' || symbol === gns3?.template?.symbol
  if (part.get('custom_adapters').itemsOrNone().length > 0) part.get('custom_adapters').leaveOut('is not imported')
  return {
    ...(x !== undefined && y !== undefined && { at: mapPosition([x, y]) }),
    ...(!isDefault && { symbol }),
  }
}

function readSegment(
  draft: Draft,
  part: Part,
  kind: string,
  { name, mapFields }: { name: string; mapFields: Fields },
): ReadNode {
  const label = part.get('name')
  const mapping = mappingOf(part)
  if (kind === 'cloud') return readCloud(draft, part, { name, mapFields })
  const ports: Record<string, Fields> = {}
  if (kind === 'switch')
    for (const it of mapping)
      it.attempt(() => {
        const tagging = taggingOf(it)
        if (Object.keys(tagging).length > 0) ports[String(numberOf(it.get('port_number')))] = tagging
      })
  const own = draft.segment(label, name, {
    kind,
    ...mapFields,
    ...(Object.keys(ports).length > 0 && { ports }),
  })
  return { name: own, endOf: (_, port) => ({ name: own, port: String(port) }) }
}

/** The ports of a segment. Early releases of GNS3 2.0 have another name for them. */
function mappingOf(part: Part): Part[] {
  const properties = part.get('properties').asObject()
  const mapping = properties.get('ports_mapping')
  return (mapping.isAbsent ? properties.get('ports') : mapping).itemsOrNone().filter((it) => it.isObject)
}

/** A port of a switch; an access port of VLAN 1 has nothing to say. */
function taggingOf(port: Part): Fields {
  const [type, vlan, ethertype] = [port.get('type'), port.get('vlan'), port.get('ethertype')]
  const number = vlanOf(vlan)
  const mode = type.optionalText() ?? 'access'
  if (mode === 'access') return number === 1 ? {} : { vlan: number }
  if (mode === 'dot1q') return { trunk: true, ...(number !== 1 && { vlan: number }) }
  if (mode !== 'qinq') throw type.error(`expected access, dot1q or qinq, got ${quoted(mode)}`)
  const word = ethertype.optionalText() ?? ''
  return { qinq: number, ...(word !== '' && word !== '0x8100' && { ethertype: word }) }
}

function vlanOf(part: Part): number {
  const number = part.optionalNumber() ?? 1
  if (Number.isInteger(number) && number >= 1 && number <= 4094) return number
  throw part.error(`expected a VLAN from 1 to 4094, got ${quoted(part.value)}`)
}

/** A cloud has ports of several devices; a segment has one: a segment for each port that has a link. */
function readCloud(draft: Draft, part: Part, { name, mapFields }: { name: string; mapFields: Fields }): ReadNode {
  const label = part.get('name')
  const mapping = mappingOf(part)
  const byNumber = new Map(mapping.map((it) => [it.get('port_number').value, it]))
  const made = new Map<number, string>()
  return {
    name,
    endOf(_, port, link) {
      const known = made.get(port)
      if (known !== undefined) return { name: known }
      const found = byNumber.get(port)
      const device = found?.get('interface').textOrNone()
      if (device === undefined || !isDevice(device)) {
        link.leaveOut(`the link to ${quoted(name)} is not imported: its port ${port} is not a device of the host`)
        return undefined
      }
      const own = draft.segment(label, made.size === 0 ? name : `${name}-${device}`, {
        kind: 'cloud',
        device,
        ...mapFields,
      })
      made.set(port, own)
      return { name: own }
    },
    finish() {
      if (made.size === 0) part.get('node_type').leaveOut('is not imported: no link uses the cloud')
    },
  }
}

function addLink(draft: Draft, nodes: ReadonlyMap<string, ReadNode | undefined>, part: Part): void {
  const ends = part.get('nodes').items()
  if (ends.length !== 2) throw part.get('nodes').error(`expected two ends, got ${ends.length}`)
  const read = ends.map((end) => {
    const id = end.get('node_id')
    if (!nodes.has(id.text())) throw id.error(`there is no node ${quoted(id.value)}`)
    const [adapter, port] = ['adapter_number', 'port_number'].map((key) => numberOf(end.get(key)))
    return nodes.get(id.text())?.endOf(adapter ?? 0, port ?? 0, end)
  })
  const [first, second] = read
  // A node that is not imported is in the list with its links.
  if (first === undefined || second === undefined) return
  const suspend = part.get('suspend')
  draft.link(part, first, second, {
    ...(suspend.value === true && { down: true }),
    ...impairmentOf(part.get('filters')),
  })
}

function numberOf(part: Part): number {
  const number = part.optionalNumber() ?? 0
  if (Number.isInteger(number) && number >= 0 && number <= 100_000) return number
  throw part.error(`expected a number from 0 on, got ${quoted(part.value)}`)
}

/** Filters of GNS3, which are of both directions. Zero is none. */
function impairmentOf(part: Part): Fields {
  const fields: Fields = {}
  for (const [name, it] of part.asObject().entries()) {
    const [first, second] = it.itemsOrNone()
    if (name === 'bpf') {
      const text = first?.textOrNone()?.trim() ?? ''
      if (text !== '') fields.bpf = text
      continue
    }
    const [value, more] = [first?.numberOrNone() ?? 0, second?.numberOrNone() ?? 0]
    if (value === 0) continue
    if (name === 'frequency_drop') fields.drop_every = value
    else if (name === 'packet_loss') fields.loss = quantityText('share', value)
    else if (name === 'corrupt') fields.corrupt = quantityText('share', value)
    else if (name === 'delay')
      Object.assign(
        fields,
        { delay: quantityText('time', value) },
        more !== 0 && { jitter: quantityText('time', more) },
      )
    else it.leaveOut('is not imported: there is no such filter')
  }
  return fields
}
