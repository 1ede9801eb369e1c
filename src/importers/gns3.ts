import { Check } from '@sinclair/typebox/value'
import { imageProperties, kindOfWord } from '../controller/archive-document.ts'
import type { KindDescriptor } from '../kinds/kind.ts'
import { kindOf } from '../kinds/node.ts'
import { labName } from '../labfile/names.ts'
import { isSegmentKind } from '../labfile/segment-kinds.ts'
import type { Fields } from '../labfile/text.ts'
import { isKnownKind } from '../model/lab/node.ts'
import { labSettings } from '../model/lab/project.ts'
import { Draft, type DraftEnd, type ImportedLab, mapPosition } from './draft.ts'
import { type Part, quoted, type Source } from './source.ts'

/** Revisions of documents that GNS3 2.2 writes and opens. */
const revisions = [8, 9]

/** Where release 2.2 has the configuration of a node, below `project-files/{kind}/{node_id}`; `property` says that there is one. */
const configFiles: Readonly<Record<string, { readonly property: string; readonly file: string }>> = {
  pc: { property: 'startup_script_path', file: 'startup.vpc' },
  iou: { property: 'startup_config', file: 'startup-config.cfg' },
}

interface ReadNode {
  readonly name: string
  readonly endOf: (adapter: number, port: number, part: Part) => DraftEnd | undefined
  /** After the last link. */
  readonly finish?: () => void
}

/**
 * A project of GNS3 2.2 (*.gns3) as a lab file. `hasFile`: whether a file is beside it, such as `project-files/vpcs/{node_id}/startup.vpc`.
 * 400 for a document that is none.
 */
export function importGns3(source: Source, hasFile: (path: string) => boolean = () => false): ImportedLab {
  const { root } = source
  const revision = root.get('revision').optionalNumber()
  if (revision === undefined || !revisions.includes(revision))
    throw root.get('revision').fault(`expected ${revisions.join(' or ')}: open and save the project with release 2.2`)
  const topology = root.get('topology')
  const draft = new Draft({ bridgesPassTags: false })
  const nodes = new Map<string, ReadNode | undefined>()
  for (const part of topology.get('nodes').items()) {
    const id = part.get('node_id').text()
    if (nodes.has(id)) throw part.get('node_id').fault('there are two nodes of this id')
    nodes.set(id, readNode(draft, part, hasFile))
  }
  for (const part of topology.get('links').items()) addLink(draft, nodes, part)
  for (const node of nodes.values()) node?.finish?.()
  const drawings = topology.get('drawings')
  if (drawings.items().length > 0) drawings.leaveOut('is not taken over: a lab file has no drawings')
  for (const [key, schema] of Object.entries(labSettings)) {
    const part = root.get(key)
    if (!part.isAbsent && JSON.stringify(part.value) !== JSON.stringify(schema.default ?? null))
      part.leaveOut('is not taken over: a lab file has no such setting')
  }
  const name = root.get('name').text()
  return draft.finish(labName(name), { leftOut: source.leftOut })
}

function readNode(draft: Draft, part: Part, hasFile: (path: string) => boolean): ReadNode | undefined {
  const type = part.get('node_type')
  const word = type.text()
  const kind = kindOfWord(word)
  const label = part.get('name')
  if (!isKnownKind(kind)) {
    type.leaveOut(
      `the node ${quoted(label.text())} is not taken over, nor are its links: there is no kind ${quoted(word)}`,
    )
    return undefined
  }
  const mapFields = mapFieldsOf(part, kind)
  if (isSegmentKind(kind)) return readSegment(draft, part, kind, mapFields)
  const name = draft.node(label, label.text(), {
    kind,
    ...propertiesOf(part, kind, word),
    ...configOf(part, kind, word, hasFile),
    ...portsOf(part),
    ...mapFields,
  })
  return { name, endOf: (adapter, port) => ({ name, ...portText(kind, adapter, port) }) }
}

/** The port of an end of a link: none for the only port of a pc. */
function portText(kind: string, adapter: number, port: number): { port?: string } {
  if (kind === 'pc') return {}
  return { port: kind === 'iou' || kind === 'dynamips' ? `${adapter}/${port}` : String(adapter) }
}

/** The properties that a node of the kind takes, but for those that have their defaults. */
function propertiesOf(part: Part, kind: string, word: string): Fields {
  const properties = part.get('properties')
  const { create, node } = kindOf(kind as Parameters<typeof kindOf>[0]) as KindDescriptor
  const record = Object.fromEntries(properties.entries().map(([key, it]) => [key, it.value]))
  const images = imageProperties({ node_type: kind, properties: record })
  const fields: Fields = {}
  const consoleType = part.get('console_type')
  if (!consoleType.isAbsent && consoleType.value !== node.properties.console_type?.default) {
    const schema = create.properties.console_type
    if (schema !== undefined && Check(schema, consoleType.value)) fields.console_type = consoleType.value
    else consoleType.leaveOut(`is not taken over: a ${kind} has no such console`)
  }
  for (const [key, it] of properties.entries()) {
    const schema = create.properties[key]
    const isComputed = /md5sum$/.test(key) || computed.has(key) || it.isAbsent || it.value === ''
    const isDefault = JSON.stringify(node.properties[key]?.default) === JSON.stringify(it.value)
    if (isComputed || isDefault || key === configFiles[kind]?.property) continue
    if (schema === undefined) it.leaveOut(`is not taken over: a ${kind} has no such setting`)
    else if (Check(schema, it.value))
      fields[imageKey(kind, key)] = images.includes(key) ? imageText(record, key) : it.value
    else throw it.fault(`a ${kind} does not take ${quoted(it.value)}`)
  }
  if (word === 'vmware') part.get('node_type').leaveOut('it becomes a VM of libvirt or VirtualBox with the same name')
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

/** The name of an image, with its digest where the document has it. */
function imageText(properties: Readonly<Record<string, unknown>>, key: string): string {
  const name = String(properties[key])
  const sum = properties[`${key}_md5sum`] ?? (key === 'path' || key === 'image' ? properties.md5sum : undefined)
  const isMain = key === 'hda_disk_image' || key === 'path' || key === 'image'
  return isMain && typeof sum === 'string' && /^[0-9a-f]{32}$/i.test(sum) ? `${name}@md5:${sum.toLowerCase()}` : name
}

function configOf(part: Part, kind: string, word: string, hasFile: (path: string) => boolean): Fields {
  const script = part.get('properties').get('startup_script')
  if (kind === 'pc' && !script.isAbsent) return { config: { text: script.text() } }
  const { file, property } = configFiles[kind] ?? {}
  if (file === undefined || property === undefined) return {}
  const path = `project-files/${word}/${part.get('node_id').text()}/${file}`
  if (hasFile(path)) return { config: `./${path}` }
  const named = part.get('properties').get(property)
  if (!named.isAbsent) named.leaveOut(`is not taken over: there is no file ${path}`)
  return {}
}

/** Names of ports that are not those of the kind. */
function portsOf(part: Part): Fields {
  const format = part.get('port_name_format').optionalText() ?? ''
  const [first, size] = [part.get('first_port_name'), part.get('port_segment_size').optionalNumber() ?? 0]
  if (!first.isAbsent && first.value !== '') first.leaveOut('is not taken over: name all ports by "ports"')
  if (format === '' || format === 'Ethernet{0}') return {}
  if (size === 0 && /^[^{}]*\{0\}$/.test(format)) return { ports: format }
  part.get('port_name_format').leaveOut('is not taken over: name the ports by "ports"')
  return {}
}

function mapFieldsOf(part: Part, kind: string): Fields {
  const [x, y] = ['x', 'y'].map((key) => part.get(key).optionalNumber())
  const symbol = part.get('symbol').optionalText()
  const { gns3 } = kindOf(kind as Parameters<typeof kindOf>[0]) as KindDescriptor
  const isDefault = symbol === undefined || symbol === '' || symbol === gns3?.template?.symbol
  if (!part.get('custom_adapters').isAbsent && part.get('custom_adapters').items().length > 0)
    part.get('custom_adapters').leaveOut('is not taken over')
  return {
    ...(x !== undefined && y !== undefined && { at: mapPosition([x, y]) }),
    ...(!isDefault && { symbol }),
  }
}

function readSegment(draft: Draft, part: Part, kind: string, mapFields: Fields): ReadNode {
  const label = part.get('name')
  const mapping = part.get('properties').get('ports_mapping')
  if (kind === 'cloud') return readCloud(draft, part, mapFields)
  const ports: Record<string, Fields> = {}
  if (kind === 'switch')
    for (const it of mapping.items()) {
      const tagging = taggingOf(it)
      if (Object.keys(tagging).length > 0) ports[it.get('port_number').text()] = tagging
    }
  const own = draft.segment(label, label.text(), {
    kind,
    ...mapFields,
    ...(Object.keys(ports).length > 0 && { ports }),
  })
  return { name: own, endOf: (_, port) => ({ name: own, port: String(port) }) }
}

/** A port of a switch; an access port of VLAN 1 has nothing to say. */
function taggingOf(port: Part): Fields {
  const [type, vlan, ethertype] = [port.get('type'), port.get('vlan'), port.get('ethertype')]
  const number = vlan.optionalNumber() ?? 1
  const mode = type.optionalText() ?? 'access'
  if (mode === 'access') return number === 1 ? {} : { vlan: number }
  if (mode === 'dot1q') return { trunk: true, ...(number !== 1 && { vlan: number }) }
  if (mode !== 'qinq') throw type.fault(`expected access, dot1q or qinq, got ${quoted(mode)}`)
  const word = ethertype.optionalText() ?? ''
  return { qinq: number, ...(word !== '' && word !== '0x8100' && { ethertype: word }) }
}

/** A cloud has ports of several devices; a segment has one: a segment for each port that has a link. */
function readCloud(draft: Draft, part: Part, mapFields: Fields): ReadNode {
  const label = part.get('name')
  const mapping = part.get('properties').get('ports_mapping').items()
  const made = new Map<number, string>()
  return {
    name: label.text(),
    endOf(_, port, link) {
      const known = made.get(port)
      if (known !== undefined) return { name: known }
      const found = mapping.find((it) => it.get('port_number').optionalNumber() === port)
      const device = found?.get('interface').optionalText()
      if (found === undefined || device === undefined) {
        link.leaveOut(
          `the link to ${quoted(label.text())} is not taken over: its port ${port} is no device of the host`,
        )
        return undefined
      }
      const own = draft.segment(label, made.size === 0 ? label.text() : `${label.text()}-${device}`, {
        kind: 'cloud',
        device,
        ...mapFields,
      })
      made.set(port, own)
      return { name: own }
    },
    finish() {
      if (made.size === 0) part.get('node_type').leaveOut('is not taken over: no link uses the cloud')
    },
  }
}

function addLink(draft: Draft, nodes: ReadonlyMap<string, ReadNode | undefined>, part: Part): void {
  const ends = part.get('nodes').items()
  if (ends.length !== 2) throw part.get('nodes').fault('expected two ends')
  const read = ends.map((end) => {
    const id = end.get('node_id')
    if (!nodes.has(id.text())) throw id.fault(`there is no node ${quoted(id.value)}`)
    const [adapter, port] = ['adapter_number', 'port_number'].map((key) => numberOf(end.get(key)))
    return nodes.get(id.text())?.endOf(adapter ?? 0, port ?? 0, end)
  })
  const [first, second] = read
  // A node that is not taken over is in the list with its links.
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
  throw part.fault(`expected a number from 0 on, got ${quoted(part.value)}`)
}

/** Filters of GNS3, which are of both directions. */
function impairmentOf(part: Part): Fields {
  const fields: Fields = {}
  for (const [name, it] of part.entries()) {
    const [first, second] = it.items()
    if (name === 'bpf') {
      const text = first?.optionalText() ?? ''
      if (text !== '') fields.bpf = text
      continue
    }
    const [value, more] = [first?.optionalNumber() ?? 0, second?.optionalNumber() ?? 0]
    if (value === 0) continue
    if (name === 'frequency_drop') fields.drop_every = value
    else if (name === 'packet_loss') fields.loss = `${value}%`
    else if (name === 'corrupt') fields.corrupt = `${value}%`
    else if (name === 'delay') Object.assign(fields, { delay: `${value}ms` }, more !== 0 && { jitter: `${more}ms` })
    else it.leaveOut('is not taken over: there is no such filter')
  }
  return fields
}
