import { labName } from '../labfile/names.ts'
import type { Fields } from '../labfile/text.ts'
import { quantityText } from '../labfile/units.ts'
import { maxBays } from '../model/kinds/iou.ts'
import { maxAdapters } from '../model/kinds/machine-emulator.ts'
import { type ConfigFile, isContainerDefinition, readContainer } from './cml-containers.ts'
import {
  type ConvertedLab,
  cdOf,
  Draft,
  type DraftEnd,
  day0Fields,
  mapPosition,
  namesOfAdapters,
  portNames,
} from './draft.ts'
import { type MachineModel, type MachineModelName, machineModel } from './machines.ts'
import { type Part, quoted, type Source } from './source.ts'

/** Node definitions of CML that are machines. Their slots are their adapters, from 0 on. */
const machineDefinitions: Readonly<Record<string, MachineModelName>> = {
  iosv: 'ios',
  iosvl2: 'ios',
  csr1000v: 'csr',
  cat8000v: 'csr',
  cat9800: 'csr',
  'cat-sdwan-edge': 'csr',
  ...{
    'cat9000v-q200': 'cat9kv',
    'cat9000v-uadp': 'cat9kv',
    nxosv9000: 'n9kv',
    nxosv9500: 'n9kv',
    'nxosv9000-lite': 'n9kv',
  },
  iosxrv: 'xrv',
  iosxrv9000: 'xrv9k',
  asav: 'asa',
  ftdv: 'ftd',
  fmcv: 'ftd',
  ubuntu: 'linux',
  alpine: 'linux',
  desktop: 'linux',
  server: 'linux',
  coreos: 'linux',
  wan_emulator: 'linux',
  trex: 'linux',
  vyos: 'vyos',
  veos: 'veos',
  fortigate: 'fortigate',
  panos: 'panos',
  mikrotik: 'routeros',
}
/** IOS on Linux: a program, for which there is a kind. */
const programDefinitions = new Set(['iol-xe', 'ioll2-xe', 'iol', 'ioll2'])
/** Containers of CML that have a console in the browser, or need a service of their vendor. */
const otherContainers = new Set(['chrome', 'chromium', 'firefox', 'splunk', 'thousandeyes-ea'])

interface Interface {
  readonly label: string
  readonly slot: number
}
interface ReadNode {
  readonly name: string
  readonly part: Part
  readonly interfaces: ReadonlyMap<string, Interface>
  /** The name of a port in the lab file; undefined: the node has one port, or the segment gives it a number. */
  portOf(port: Interface): string | undefined
}

/** A lab of CML (*.yaml) as a lab file. 400 when nothing of it can be made. */
export function importCml(source: Source): ConvertedLab {
  const { root } = source
  const lab = root.get('lab')
  if (!lab.isObject) throw root.error('lab is missing: this is not a lab of CML')
  const draft = new Draft({ bridgesPassTags: true })
  const nodes = new Map<string, ReadNode>()
  for (const part of root.get('nodes').itemsOrNone()) {
    draft.readNode(part, () => {
      const id = part.get('id').text()
      if (nodes.has(id)) throw part.get('id').error(`two nodes have the id ${quoted(id)}`)
      nodes.set(id, readNode(draft, part))
      part.leaveOutUnread(() => 'is not imported')
    })
  }
  draft.requireNodes()
  for (const part of root.get('links').itemsOrNone()) part.attempt(() => addLink(draft, nodes, part))
  for (const key of ['annotations', 'smart_annotations'])
    if (root.get(key).itemsOrNone().length > 0) root.get(key).leaveOut('is not imported: a lab file has no drawings')
  for (const key of ['version', 'timestamp', 'id', 'owner', 'created', 'modified']) lab.get(key)
  const texts = ['description', 'notes'].map((key) => ({ key, text: lab.get(key).textOrNone()?.trim() ?? '' }))
  const given = texts.filter(({ text }) => text !== '')
  const about = { text: given.map(({ text }) => text).join('\n\n'), part: lab.get(given.at(-1)?.key ?? 'notes') }
  const title = lab.get('title').textOrNone() ?? 'lab'
  lab.leaveOutUnread(() => 'is not imported')
  root.leaveOutUnread(() => 'is not imported')
  return draft.finish(labName(title), { about, source })
}

function readNode(draft: Draft, part: Part): ReadNode {
  const definition = part.get('node_definition').text()
  const label = part.get('label')
  const name = label.textOrNone() ?? definition
  const interfaces = readInterfaces(part.get('interfaces'))
  const at = positionOf(part)
  for (const key of ['hide_links', 'cpu_limit']) part.get(key)
  const cannotRun = whyNot(definition)
  const origin = { from: definition, ...(cannotRun !== undefined && { cannotRun }) }
  const add = (fields: Fields) => draft.node(label, name, { ...fields, ...at, ...labelsOf(part) }, origin)
  const node = (own: string, portOf: ReadNode['portOf']): ReadNode => ({ name: own, part: part, interfaces, portOf })

  if (definition === 'unmanaged_switch' || definition === 'external_connector') {
    for (const key of [...unusedOfSegment, 'tags']) part.get(key)
    if (definition === 'unmanaged_switch')
      return node(draft.segment(label, name, { kind: 'switch', ...at }), ({ slot }) => String(slot))
    return node(draft.segment(label, name, { ...connector(part), ...at }), () => undefined)
  }
  const ports = [...interfaces.values()]
  const adapters = Math.max(0, ...ports.map(({ slot }) => slot + 1))
  if (programDefinitions.has(definition)) {
    const [config] = configFiles(part)
    const fields = {
      ...{
        kind: 'iou',
        image: imageName(part, definition, 'bin'),
        ethernet_adapters: Math.min(maxBays, Math.max(1, Math.ceil(adapters / 4))),
      },
      serial_adapters: 0,
      ...(config !== undefined && { config: { text: config.text } }),
    }
    for (const key of ['ram', 'cpus']) part.get(key)
    return node(add(fields), ({ slot }) => `e${Math.floor(slot / 4)}/${slot % 4}`)
  }
  if (isContainerDefinition(definition)) {
    leaveOutDisks(part)
    const image = imageName(part, definition, 'tar.gz')
    const links = ports.length
    const fields = readContainer(part, definition, { image, configs: configFiles(part), links })
    return node(
      add({ ...fields, ...(adapters !== 1 && { adapters: Math.max(1, adapters) }) }),
      ({ slot }) => `eth${slot}`,
    )
  }
  const named = new Map(ports.map(({ slot, label: port }) => [slot, port]))
  const shown = portNames(namesOfAdapters(adapters, named))
  const own = add({
    ...machineOf(part, definition),
    adapters: Math.max(1, adapters),
    ...(shown !== undefined && { ports: shown }),
  })
  return node(own, ({ label: port }) => port)
}

/** Why a node of a definition cannot run; undefined: it can. */
function whyNot(definition: string): string | undefined {
  const isKnown = machineDefinitions[definition] !== undefined || programDefinitions.has(definition)
  if (isKnown || isContainerDefinition(definition)) return undefined
  return otherContainers.has(definition)
    ? 'it is a container that cannot run here yet'
    : `the node definition ${quoted(definition)} is not known`
}

/** Settings that the segments of CML have, too, and that mean nothing for them. */
const unusedOfSegment = [
  'ram',
  'cpus',
  'boot_disk_size',
  'data_volume',
  'image_definition',
  'parameters',
  'configuration',
]

/** The fields of a machine, but for its ports. */
function machineOf(part: Part, definition: string): Fields {
  const { fields, day0, ready } = machineModel(machineDefinitions[definition] ?? 'placeholder')
  const [ram, cpus] = ['ram', 'cpus'].map((key) => part.get(key).numberOrNone())
  leaveOutDisks(part)
  return {
    ...fields,
    image: imageName(part, definition, 'qcow2'),
    ...(ram !== undefined && ram >= 1 && { ram: Math.round(ram) }),
    ...(cpus !== undefined && cpus >= 1 && { cpus: Math.round(cpus) }),
    ...day0For(part, day0, fields),
    ...(ready !== undefined && { ready: { console: ready } }),
  }
}

function leaveOutDisks(part: Part): void {
  for (const key of ['boot_disk_size', 'data_volume'])
    if ((part.get(key).numberOrNone() ?? 0) > 0) part.get(key).leaveOut('is not imported: resize the disk of the node')
  const parameters = part.get('parameters')
  if (parameters.isObject && parameters.entries().length > 0) parameters.leaveOut('is not imported')
}

/** The configuration of a machine as a CD or disk, where its system reads one. */
function day0For(part: Part, day0: MachineModel['day0'], fields: Fields): Fields {
  const configs = configFiles(part)
  const [first] = configs
  if (first === undefined) return {}
  if (day0 === undefined) {
    part
      .get('configuration')
      .leaveOut('is not imported: this machine reads no configuration from a CD, type it at its console')
    return {}
  }
  const isCloudInit = configs.some(({ name, text }) => name === 'user-data' || /^#cloud-config/.test(text))
  const named = configs.map(({ name, text }) => ({ name: name ?? (isCloudInit ? 'user-data' : day0.file), text }))
  const files = Object.assign({}, ...named.map(({ name, text }) => cdOf(name, { text })))
  if (day0.medium !== undefined) return day0Fields(day0, files, fields)
  return { day0: { label: isCloudInit || named.some(({ name }) => name === 'user-data') ? 'cidata' : 'config', files } }
}

/** The configurations of a node: a text, or a list of files. */
function configFiles(part: Part): ConfigFile[] {
  const config = part.get('configuration')
  if (config.isAbsent || config.value === '') return []
  if (!config.isList) {
    const text = config.textOrNone() ?? ''
    return text === '' ? [] : [{ part: config, name: undefined, text }]
  }
  return config
    .items()
    .flatMap(
      (file) =>
        file.attempt(() => ({
          part: file,
          name: fileName(file.get('name')),
          text: file.get('content').optionalText() ?? '',
        })) ?? [],
    )
    .filter(({ text }) => text !== '')
}

/** The name of a file on a CD. 400 for one that is a path. */
function fileName(part: Part): string | undefined {
  const name = part.optionalText()
  if (name === undefined || name === 'default') return undefined
  if (!/^[\w][\w.-]{0,100}$/.test(name)) throw part.error(`expected the name of a file, got ${quoted(name)}`)
  return name
}

function imageName(part: Part, definition: string, extension: string): string {
  const image = part.get('image_definition').textOrNone() ?? ''
  return `${image === '' ? definition : image}.${extension}`.replaceAll(/[^\w.-]/g, '-')
}

/** What an external connector is here: a nat, or a bridge of the host. */
function connector(part: Part): Fields {
  const configuration = part.get('configuration')
  const [config] = configFiles(part)
  const text = config?.text.trim() ?? 'NAT'
  if (/^(nat|virbr0|)$/i.test(text)) return { kind: 'nat' }
  const device = /^[\w.-]{1,15}$/.test(text) ? text : 'bridge0'
  configuration.change(
    `${quoted(text)} becomes a cloud with the device ${quoted(device)} of the host: the device must exist, and using it requires a privilege`,
  )
  return { kind: 'cloud', device }
}

function readInterfaces(list: Part): Map<string, Interface> {
  const found = new Map<string, Interface>()
  const [slots, labels] = [new Set<number>(), new Set<string>()]
  let next = 0
  const read = (part: Part) => {
    const id = part.get('id').text()
    const type = part.get('type').optionalText() ?? 'physical'
    const slot = part.get('slot').optionalNumber() ?? next
    const label = part.get('label').textOrNone() ?? `port${slot}`
    const mac = part.get('mac_address')
    if (!mac.isAbsent && mac.value !== '') mac.change('is not imported: the machine gets another address')
    part.leaveOutUnread(() => 'is not imported')
    if (type !== 'physical') return
    if (!Number.isInteger(slot) || slot < 0 || slot >= maxAdapters)
      throw part.get('slot').error(`expected a number from 0 to ${maxAdapters - 1}`)
    if (slots.has(slot) || labels.has(label.toLowerCase()))
      throw part.error(`another interface has the slot ${slot} or the label ${quoted(label)}`)
    slots.add(slot)
    labels.add(label.toLowerCase())
    found.set(id, { label, slot })
    next = slot + 1
  }
  for (const part of list.itemsOrNone()) part.attempt(read)
  return found
}

function addLink(draft: Draft, nodes: ReadonlyMap<string, ReadNode>, part: Part): void {
  const endOf = (node: Part, port: Part): DraftEnd => {
    const found = nodes.get(node.text())
    if (found === undefined) throw node.error(`there is no node with the id ${quoted(node.value)}`)
    const at = found.interfaces.get(port.text())
    if (at === undefined)
      throw port.error(`the node ${quoted(found.name)} has no physical interface ${quoted(port.value)}`)
    const own = found.portOf(at)
    return { name: found.name, ...(own !== undefined && { port: own }) }
  }
  const ends = [endOf(part.get('n1'), part.get('i1')), endOf(part.get('n2'), part.get('i2'))] as const
  for (const key of ['id', 'label']) part.get(key)
  draft.link(part, ends[0], ends[1], impairment(part.get('conditioning')))
  part.leaveOutUnread(() => 'is not imported')
}

/** Link conditioning, whose parameters are those of tc-netem(8), for both directions. */
function impairment(given: Part): Fields {
  const part = given.asObject()
  if (part.isAbsent) return {}
  const enabled = part.get('enabled')
  const of = (key: string): number | undefined => {
    const number = part.get(key).numberOrNone()
    return number === undefined || number <= 0 ? undefined : number
  }
  const fields: Fields = {}
  const [delay, jitter, rate] = [of('latency'), of('jitter'), of('bandwidth')]
  if (delay !== undefined) fields.delay = quantityText('time', delay)
  if (jitter !== undefined && delay !== undefined) fields.jitter = quantityText('time', jitter)
  else if (jitter !== undefined) part.get('jitter').leaveOut('is not imported: jitter needs a latency')
  if (rate !== undefined) fields.rate = quantityText('rate', rate)
  for (const [theirs, ours] of shares) {
    const share = of(theirs)
    if (share !== undefined) fields[ours] = quantityText('share', Math.min(100, share))
  }
  for (const key of part.value === null
    ? []
    : ['limit', 'gap', 'delay_corr', 'loss_corr', 'duplicate_corr', 'reorder_corr', 'corrupt_corr'])
    if (of(key) !== undefined) part.get(key).leaveOut('is not imported')
  part.leaveOutUnread(() => 'is not imported')
  if (enabled.value !== false || Object.keys(fields).length === 0) return fields
  part.leaveOut('is not imported: it is switched off')
  return {}
}
const shares = [
  ['loss', 'loss'],
  ['corrupt_prob', 'corrupt'],
  ['duplicate', 'duplicate'],
  ['reorder_prob', 'reorder'],
] as const

function positionOf(part: Part): Fields {
  const [x, y] = ['x', 'y'].map((key) => part.get(key).numberOrNone())
  if (x === undefined || y === undefined) return {}
  return { at: mapPosition([x, y]) }
}

function labelsOf(part: Part): Fields {
  const tags = part
    .get('tags')
    .itemsOrNone()
    .flatMap((it) => it.textOrNone() ?? [])
  return tags.length === 0 ? {} : { labels: { tags: tags.join(', ') } }
}
