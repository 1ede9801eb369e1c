import { Equal } from '@sinclair/typebox/value'
import type { Desired, DesiredEnd, DesiredLink, DesiredNode, SegmentPort } from '../labfile/desired.ts'
import { quoted } from '../labfile/diagnostics.ts'
import { impairmentFields } from '../labfile/document.ts'
import { portText } from '../labfile/management-fields.ts'
import { managementName } from '../labfile/schema.ts'
import { type Fields, yamlText } from '../labfile/text.ts'
import { hostnameOf } from '../lib/text/host-name.ts'
import { type ContainerFile, containerSettings } from '../model/kinds/container.ts'
import { containerImageName, imageNeeds } from '../model/kinds/image-names.ts'
import { defaultHostAddress } from '../model/kinds/nat-guests.ts'
import { defaultSubnet } from '../model/kinds/nat-subnet.ts'
import { kindOf } from '../model/kinds/node.ts'

/** A file beside a topology. */
export interface ExportedFile {
  /** Relative to the directory of the topology, in it. */
  readonly path: string
  readonly text: string
  readonly mode: string
}

/** A lab as a topology of containerlab. */
export interface ContainerlabExport {
  readonly text: string
  /** How many of its nodes are containers. */
  readonly containers: number
  /** The files that its containers begin with. */
  readonly files: readonly ExportedFile[]
  /** What of the lab is not in it, as one sentence each. */
  readonly leftOut: readonly string[]
}

/**
 * The containers of a lab, its switches without VLANs, and their links as a topology of containerlab (*.clab.yml). All that an import of
 * it would make otherwise is named in the answer, and in comments of the text.
 */
export function containerlabOf(desired: Desired): ContainerlabExport {
  const leftOut: string[] = []
  const { lab, about, starting, checks, tasks = [] } = desired
  const net = desired.nodes.find(({ name }) => name === desired.management)
  const withVlans = switchesWithVlans(desired)
  const isBridge = ({ kind, name }: DesiredNode) => kind === 'switch' && !withVlans.has(name)
  const nodes = desired.nodes.filter((node) => node.kind === 'container' || isBridge(node))
  for (const node of desired.nodes)
    if (node !== net && !nodes.includes(node)) leftOut.push(`${labelOf(node)}, with its links.`)
  const names = namesOf(nodes, leftOut)
  const links = desired.links.filter(
    ({ isManagement, ends }) => isManagement !== true && ends.every(({ node }) => names.has(node)),
  )
  const endsByNode = new Map(nodes.map(({ name }): [string, DesiredEnd[]] => [name, []]))
  for (const end of links.flatMap(({ ends }) => ends)) endsByNode.get(end.node)?.push(end)
  const exported = nodes.map((node) => {
    const name = names.get(node.name) ?? node.name
    const ends = endsByNode.get(node.name) ?? []
    const made = node.kind === 'container' ? containerOf(node, { name, ends, names }) : bridgeOf(node)
    const lost = [...made.lost, ...removeTemplates(made.fields)]
    if (lost.length > 0) leftOut.push(`${labelOf(node)}: ${[...new Set(lost)].join(', ')}.`)
    return { name, ...made }
  })
  leftOut.push(...links.flatMap(lostOfLink), ...neededOf(nodes, names))
  if (net !== undefined) leftOut.push(...lostOfManagement(net))
  if (about !== undefined) leftOut.push('What the lab is for.')
  if (!Equal(starting, { give_up: 'stop' })) leftOut.push('How the nodes are started.')
  if (checks.length > 0) leftOut.push('The checks.')
  if (tasks.length > 0) leftOut.push('The tasks.')
  const topology = {
    name: lab,
    ...(net !== undefined && {
      mgmt: { network: lab, 'ipv4-subnet': String(net.properties.subnet ?? defaultSubnet) },
    }),
    topology: {
      nodes: Object.fromEntries(exported.map(({ name, fields }) => [name, fields])),
      ...(links.length > 0 && { links: linksOf(links, desired, names) }),
    },
  }
  // containerlab reads the whole text as a template, and replaces variables in it, before it reads YAML.
  const plain = leftOut.map((line) => `* ${line.replaceAll(/\{(?=\{)/g, '{ ')}`)
  const comments = leftOut.length === 0 ? [] : ['Not in this file:', ...plain]
  return {
    text: yamlText(topology, comments).replaceAll('$', () => '$$'),
    containers: nodes.filter(({ kind }) => kind === 'container').length,
    files: exported.flatMap(({ files }) => files),
    leftOut,
  }
}

const labelOf = ({ kind, name }: DesiredNode): string => `The ${kindOf(kind).noun} ${name}`

/** The switches that tell frames by their VLANs, by name. A bridge is a switch whose ports are all trunks. */
function switchesWithVlans({ nodes, links }: Desired): Set<string> {
  const hasVlan = (port: SegmentPort | undefined) => port?.vlan !== undefined || port?.type === 'qinq'
  const ofPorts = nodes.filter(({ segment }) => Object.values(segment?.ports ?? {}).some(hasVlan))
  const ofLinks = links.flatMap(({ ends }) => ends.filter(({ port }) => hasVlan(port)))
  return new Set([...ofPorts.map(({ name }) => name), ...ofLinks.map(({ node }) => node)])
}

/** What Docker takes as a part of the name of a container, and Linux as the name of a bridge. */
const plainName = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/
const longest = { container: 63, switch: 15 } as const
/** What an end of a link means in place of a node. */
const reserved = ['host', 'mgmt-net', 'macvlan', 'dummy']

/** The names in the topology, by those in the lab. */
function namesOf(nodes: readonly DesiredNode[], leftOut: string[]): Map<string, string> {
  const most = ({ kind }: DesiredNode) => (kind === 'switch' ? longest.switch : longest.container)
  const isPlain = (node: DesiredNode) =>
    plainName.test(node.name) && node.name.length <= most(node) && !reserved.includes(node.name)
  const taken = new Set([...reserved, ...nodes.filter(isPlain).map(({ name }) => name)])
  return new Map(
    nodes.map((node) => {
      if (isPlain(node)) return [node.name, node.name]
      // A dash and a number fit, too.
      const short = hostnameOf(node.name).slice(0, most(node) - 5)
      let name = short
      for (let number = 2; taken.has(name); number++) name = `${short}-${number}`
      taken.add(name)
      leftOut.push(`${labelOf(node)}: its name, which is ${name} here.`)
      return [node.name, name]
    }),
  )
}

/** What is needed on the host of containerlab: images that no registry has, and bridges. */
function neededOf(nodes: readonly DesiredNode[], names: ReadonlyMap<string, string>): string[] {
  const images = nodes.flatMap(({ kind, properties }) => (kind === 'container' ? [String(properties.image)] : []))
  const files = [...new Set(images)].filter((image) => containerImageName(image) === image)
  const bridges = nodes.flatMap(({ kind, name }) => (kind === 'switch' ? [names.get(name) ?? name] : []))
  return [
    ...files.map((image) => `The image ${image}, which Docker must have under this name.`),
    ...bridges.map((bridge) => `The bridge ${bridge}, which the host must have under this name.`),
  ]
}

interface ExportedNode {
  readonly fields: Fields
  readonly files: readonly ExportedFile[]
  /** Names of what it does not have. */
  readonly lost: readonly string[]
}

const bridgeOf = (node: DesiredNode): ExportedNode => ({
  fields: { kind: 'bridge', ...labelsOf(node) },
  files: [],
  lost: [...lostSettings(node), ...(node.settings.symbol === undefined ? [] : ['symbol'])],
})

/** The settings of a container that have a place in a topology. */
const exportedSettings = [
  ...['image', 'adapters', 'command', 'entrypoint', 'environment', 'user', 'shm', 'exec', 'files', 'sysctls'],
  ...['capabilities', 'ram', 'cpus', 'consoles'],
]

interface ContainerInput {
  /** Its name in the topology. */
  readonly name: string
  /** Its ends of links. */
  readonly ends: readonly DesiredEnd[]
  /** The names of all nodes in the topology. */
  readonly names: ReadonlyMap<string, string>
}

function containerOf(node: DesiredNode, { name, ends, names }: ContainerInput): ExportedNode {
  const { properties, management, settings } = node
  const text = (key: string): string => String(properties[key] ?? '')
  const needs = imageNeeds(text('image'))
  const lost = lostSettings(node)
  const adapters = ends.map(({ adapter_number }) => adapter_number)
  // `eth0` is there without a link, too.
  if (Number(properties.adapters ?? 1) > Math.max(0, ...adapters) + 1) lost.push('adapters after the last link')
  const usual = [...needs.consoles, ...containerSettings.consoles.default]
  if (!Equal(properties.consoles ?? containerSettings.consoles.default, usual)) lost.push('consoles')
  const capabilities = (properties.capabilities ?? []) as readonly string[]
  const added = needs.capabilities.filter((it) => !capabilities.includes(it))
  if (added.length > 0) lost.push(`capabilities (an import adds ${added.join(' and ')})`)
  const { symbol } = kindOf(node.kind)
  if ((settings.symbol ?? symbol) !== (needs.symbol || symbol)) lost.push('symbol')
  const after = node.after.flatMap((it) => names.get(it) ?? [])
  if (after.length < node.after.length) lost.push('after')
  const { binds, files } = bindsOf(properties.files as readonly ContainerFile[] | undefined, name, lost)
  const environment = pairsOf(text('environment'))
  if (environment.delete('__IMPORT_ENVS')) lost.push('the variable __IMPORT_ENVS')
  const commands = linesOf(text('exec'))
  lost.push(...commands.filter(isTemplate).map((line) => `the command ${quoted(line)} ${asTemplate}`))
  const fields: Fields = {
    kind: 'linux',
    image: containerImageName(text('image')),
    ...whereSet('cmd', text('command')),
    ...whereSet('entrypoint', text('entrypoint')),
    ...whereSet('env', Object.fromEntries(environment)),
    ...whereSet('user', text('user')),
    ...whereSet('binds', binds),
    ...whereSet('sysctls', Object.fromEntries(sysctlsOf(text('sysctls'), adapters.length))),
    ...whereSet('cap-add', capabilities),
    ...whereSet('exec', commands.filter((line) => !isTemplate(line)).map(commandOf)),
    ...(Number(properties.ram ?? 0) > 0 && { memory: `${properties.ram}mb` }),
    ...(Number(properties.cpus ?? 0) > 0 && { cpu: properties.cpus }),
    ...(properties.shm !== undefined && { 'shm-size': `${properties.shm}mb` }),
    ...(management === undefined
      ? { 'network-mode': 'none' }
      : {
          'mgmt-ipv4': management.address,
          ...whereSet(
            'ports',
            management.ports.map(({ host_address = defaultHostAddress, ...port }) =>
              portText({ ...port, host_address }),
            ),
          ),
        }),
    ...labelsOf(node),
    ...stagesOf(after),
  }
  return { fields, files, lost }
}

/** What a container of containerlab has nothing for, by the names of the keys of a lab file. */
function lostSettings(node: DesiredNode): string[] {
  const { properties, settings, labels, start, ready, management, placement, imageDigest } = node
  const ofManagement = management === undefined ? [] : ['address', 'gateway', 'resolver']
  const known = new Set([...exportedSettings, ...ofManagement])
  const { console, console_type, port_name_format, custom_adapters } = settings
  const others = {
    console,
    console_type,
    ports: port_name_format,
    custom_adapters,
    ready,
    placement,
    digest: imageDigest,
  }
  return [
    ...Object.keys(properties).filter((key) => !known.has(key)),
    ...Object.entries(others).flatMap(([key, value]) => (value === undefined ? [] : [key])),
    ...Object.keys(labels).filter(isOfMap),
    ...(start ? [] : ['start']),
  ]
}

const isOfMap = (label: string): boolean => label.startsWith('graph-')

/** Labels, and the position on the map among them. */
function labelsOf({ labels, settings: { x, y } }: DesiredNode): Fields {
  const own = Object.entries(labels).filter(([key]) => !isOfMap(key))
  const position = x === undefined || y === undefined ? {} : { 'graph-posX': String(x), 'graph-posY': String(y) }
  return whereSet('labels', { ...Object.fromEntries(own), ...position })
}

const whereSet = (key: string, value: string | object): Fields =>
  (typeof value === 'string' ? value.length : Object.keys(value).length) === 0 ? {} : { [key]: value }

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '')

/** Lines `NAME=value`. */
const pairsOf = (text: string): Map<string, string> =>
  new Map(
    linesOf(text).map((line) => {
      const at = line.indexOf('=')
      return [line.slice(0, at), line.slice(at + 1)]
    }),
  )

/** Containers of Docker forward, and those here do not unless they are told to. */
function sysctlsOf(text: string, links: number): Map<string, string> {
  const given = pairsOf(text)
  const forwarding = 'net.ipv4.ip_forward'
  return links > 1 && !given.has(forwarding) ? new Map([[forwarding, '0'], ...given]) : given
}

const shellOnly = /[|&;<>()$`*?[\]{}~#!]|^\s*\w+=/
const ofShell = /^sh -c '(?:[^']|'\\'')*'$/

/** A command as containerlab runs it: it has words, and no shell. */
const commandOf = (line: string): string =>
  shellOnly.test(line) && !ofShell.test(line) ? `sh -c '${line.replaceAll("'", "'\\''")}'` : line

/** The files of a container as binds of files beside the topology. */
function bindsOf(given: readonly ContainerFile[] = [], name: string, lost: string[]) {
  const files: ExportedFile[] = []
  const binds: string[] = []
  const taken = new Set<string>()
  for (const { path, text, mode = '0644' } of given) {
    if (path.includes(':') || isTemplate(path)) {
      lost.push(`the file ${path}${path.includes(':') ? '' : ` ${asTemplate}`}`)
      continue
    }
    const bits = Number.parseInt(mode, 8)
    const isProgram = (bits & 0o111) !== 0
    const again = isProgram ? '0755' : '0644'
    if (bits !== Number.parseInt(again, 8)) lost.push(`the mode of ${path} (${again} after an import)`)
    const plain = path
      .slice(path.lastIndexOf('/') + 1)
      .replaceAll(/[^\w.-]/g, '-')
      .replace(/^\./, '_')
    // An import takes scripts as programs.
    const base = plain.endsWith('.sh') && !isProgram ? `${plain}.txt` : plain
    let file = base
    for (let number = 2; taken.has(file); number++) file = `${number}-${base}`
    taken.add(file)
    files.push({ path: `configs/${name}/${file}`, text, mode })
    binds.push(`configs/${name}/${file}:${path}`)
  }
  return { binds, files }
}

/** Whether containerlab would replace a part of a value. */
const isTemplate = (value: unknown): boolean => /\{\{|__clab/.test(JSON.stringify(value))
const asTemplate = '(it would be a template there)'

/** What entries of settings, and settings of one text, are called where they are lost. */
const lostNames: Readonly<Record<string, string>> = {
  env: 'the variable',
  labels: 'the label',
  sysctls: 'the parameter',
  cmd: 'command',
}

/** Removes what containerlab would read as a template: of maps only such entries. Their names. */
function removeTemplates(fields: Fields): string[] {
  const lost: string[] = []
  for (const [key, value] of Object.entries(fields)) {
    if (!isTemplate(value)) continue
    const noun = lostNames[key] ?? key
    delete fields[key]
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const entries = Object.entries(value)
      lost.push(...entries.filter(isTemplate).map(([name]) => `${noun} ${quoted(name)} ${asTemplate}`))
      Object.assign(fields, whereSet(key, Object.fromEntries(entries.filter((entry) => !isTemplate(entry)))))
    } else lost.push(`${noun} ${asTemplate}`)
  }
  return lost
}

/** `after`: the node is made when the others are configured. */
const stagesOf = (after: readonly string[]): Fields =>
  after.length === 0 ? {} : { stages: { create: { 'wait-for': after.map((node) => ({ node, stage: 'configure' })) } } }

/** The ends of links. A bridge has a device of the host for each, whose name is unique there. */
function linksOf(links: readonly DesiredLink[], { lab, nodes }: Desired, names: ReadonlyMap<string, string>): Fields[] {
  const bridges = new Set(nodes.flatMap(({ kind, name }) => (kind === 'switch' ? [name] : [])))
  const prefix = lab.slice(0, 9)
  let devices = 0
  const endpoint = ({ node, adapter_number }: DesiredEnd): string => {
    const device = bridges.has(node) ? `${prefix}-p${++devices}` : `eth${adapter_number}`
    return `${names.get(node)}:${device}`
  }
  return links.map(({ ends }) => ({ endpoints: ends.map(endpoint) }))
}

function lostOfManagement({ name, settings, labels }: DesiredNode): string[] {
  const keys = [
    ...(name === managementName ? [] : ['name']),
    ...(settings.x === undefined ? [] : ['at']),
    ...(settings.symbol === undefined ? [] : ['symbol']),
    ...(Object.keys(labels).length === 0 ? [] : ['labels']),
  ]
  return keys.length === 0 ? [] : [`${keys.join(', ')} of the management network.`]
}

function lostOfLink({ name, ends, suspend, capture, filters_ab, filters_ba }: DesiredLink): string[] {
  const keys = [
    ...(name === undefined ? [] : ['name']),
    ...(suspend ? ['down'] : []),
    ...(capture === undefined ? [] : ['capture']),
    ...Object.keys(impairmentFields(filters_ab, filters_ba)),
  ]
  return keys.length === 0 ? [] : [`${keys.join(', ')} of the link ${ends.map(({ node }) => node).join(' -- ')}.`]
}
