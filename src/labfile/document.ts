import { omit } from '../lib/omit.ts'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { defaultSubnet } from '../model/kinds/nat-subnet.ts'
import { kindIfKnown, kindOf } from '../model/kinds/node.ts'
import type { LabPort } from '../model/lab/node.ts'
import type { LabCheck } from '../model/lab/task.ts'
import type { Filters } from '../model/schema/filters.ts'
import { derivedName } from './checks.ts'
import type {
  Desired,
  DesiredConfig,
  DesiredEnd,
  DesiredLink,
  DesiredNode,
  DesiredReady,
  DesiredTask,
} from './desired.ts'
import { impairmentOf } from './impairment.ts'
import { portOf } from './links.ts'
import { managementField, ownProperties } from './management-fields.ts'
import { portsOfNode } from './nodes.ts'
import { managementName } from './schema.ts'
import { taggingOf } from './segments.ts'
import { wordOfKind } from './short-words.ts'
import type { Fields, LabFileData } from './text.ts'
import { quantityText } from './units.ts'

/** A lab file for a normal form: read again, it gives an equal one. It has no templates and no variables. */
export function documentOf(desired: Desired): LabFileData {
  const ports = new Map(
    desired.nodes.map((node) => [node.name, node.segment === undefined ? portsOfNode(node) : undefined]),
  )
  const { lab, about, nodes, starting, checks, tasks } = desired
  const links = desired.links.filter(({ isManagement }) => isManagement !== true)
  const net = nodes.find(({ name }) => name === desired.management)
  const computes = new Set(nodes.map(({ compute_id }) => compute_id))
  const [compute] = computes.size === 1 ? [...computes] : []
  const computeOf = ({ compute_id }: DesiredNode): Fields =>
    compute === undefined && compute_id !== undefined ? { compute: escaped(compute_id) } : {}
  const section = (isSegment: boolean, fields: (node: DesiredNode) => Fields) =>
    Object.fromEntries(
      nodes
        .filter((node) => node !== net && (node.segment !== undefined) === isSegment)
        .map((node) => [node.name, { ...fields(node), ...computeOf(node) }]),
    )
  const segments = section(true, (node) => segmentFields(node, links, ports))
  const plainLinks = links.filter(({ memberOf }) => memberOf === undefined).map((link) => linkFields(link, ports))
  const how = {
    ...(starting.at_once !== undefined && { at_once: starting.at_once }),
    ...(starting.load_below !== undefined && { load_below: quantityText('share', starting.load_below) }),
    ...(starting.give_up !== 'stop' && { give_up: starting.give_up }),
  }
  return {
    lab,
    version: 1,
    ...(about !== undefined && { about: escaped(about) }),
    ...(compute !== undefined && { compute: escaped(compute) }),
    nodes: section(false, (node) => nodeFields(node, net)),
    ...(Object.keys(segments).length > 0 && { segments }),
    ...(net !== undefined && { management: { ...managementFields(net), ...computeOf(net) } }),
    ...(plainLinks.length > 0 && { links: plainLinks }),
    ...(Object.keys(how).length > 0 && { starting: how }),
    ...(checks.length > 0 && { checks: checks.map((check) => checkFields(check, 30)) }),
    ...(tasks !== undefined && { tasks: tasks.map(taskFields) }),
  }
}

type PortsByNode = ReadonlyMap<string, readonly LabPort[] | undefined>

/** The text with its `${` as `$${`, which is no variable. */
export const escaped = (text: string): string => text.replaceAll('$'.concat('{'), '$$$${')

/** All texts of a value. */
function allEscaped(value: unknown): unknown {
  if (typeof value === 'string') return escaped(value)
  if (Array.isArray(value)) return value.map(allEscaped)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, allEscaped(it)]))
}

/** The section `management` of its nat. */
const managementFields = (net: DesiredNode): Fields => ({
  network: net.properties.subnet ?? defaultSubnet,
  ...(net.name !== managementName && { name: escaped(net.name) }),
  ...commonFields(net),
})

function nodeFields(node: DesiredNode, net: DesiredNode | undefined): Fields {
  const { kind, settings, configs, day0, start, after, ready } = node
  const network = String(net?.properties.subnet ?? defaultSubnet)
  const properties = net === undefined ? node.properties : ownProperties(node, network)
  const { image }: KindDescriptor = kindOf(kind)
  const { [image?.field ?? '']: file, ...fields } = properties
  const digest = node.imageDigest === undefined ? '' : `@${node.imageDigest.algorithm}:${node.imageDigest.hex}`
  // A name that ends like a digest would be read as one.
  const isPlain = typeof file === 'string' && (digest !== '' || !/@(?:sha256|md5):[^@]*$/i.test(file)) && file !== ''
  return {
    kind: wordOfKind(kind),
    ...(isPlain && { image: `${escaped(file)}${digest}` }),
    ...commonFields(node),
    ...(image !== undefined && !isPlain && file !== undefined && { [image.field]: allEscaped(file) }),
    ...(allEscaped(fields) as Fields),
    ...(settings.console !== undefined && { console: settings.console }),
    ...(settings.console_type !== undefined && { console_type: settings.console_type }),
    ...namingFields(node),
    ...(net !== undefined && managementField(node)),
    ...configFields(configs),
    ...(day0 !== undefined && {
      day0: {
        ...(day0.medium !== 'cd' && { medium: day0.medium }),
        label: day0.label,
        files: Object.fromEntries(Object.entries(day0.files).map(([name, it]) => [name, contentOf(it)])),
      },
    }),
    ...(!start && { start }),
    ...(after.length > 0 && { after: after.map(escaped) }),
    ...(ready !== undefined && { ready: readyFields(ready) }),
  }
}

const commonFields = ({ settings: { x, y, symbol }, labels, placement, was }: DesiredNode): Fields => ({
  ...(x !== undefined && y !== undefined && { at: [x, y] }),
  ...(symbol !== undefined && { symbol: escaped(symbol) }),
  ...(Object.keys(labels).length > 0 && { labels: allEscaped(labels) }),
  ...(placement !== undefined && { placement: allEscaped(placement) }),
  ...(was !== undefined && { was: escaped(was) }),
})

/** `ports` and `custom_adapters`. */
function namingFields({ kind, settings: { port_name_format, custom_adapters } }: DesiredNode): Fields {
  const isList = custom_adapters?.every(
    (it, index) => it.adapter_number === index && it.port_name !== undefined && Object.keys(it).length === 2,
  )
  const pattern = port_name_format?.replace(/\{port(\d)\}/, '{$1-}')
  return {
    ...(pattern !== undefined && { ports: escaped(pattern) }),
    ...(custom_adapters !== undefined &&
      (isList && pattern === undefined
        ? { ports: custom_adapters.map(({ port_name }) => escaped(port_name ?? '')) }
        : 'custom_adapters' in kindOf(kind).create.properties && { custom_adapters: allEscaped(custom_adapters) })),
  }
}

const contentOf = ({ file, text }: DesiredConfig): string | { text: string } =>
  file === undefined ? { text } : escaped(file)

function configFields({ startup, private: secret }: DesiredNode['configs']): Fields {
  if (startup === undefined && secret === undefined) return {}
  if (secret === undefined && startup?.file !== undefined) return { config: escaped(startup.file) }
  return {
    config: {
      ...(startup !== undefined &&
        (startup.file === undefined ? { text: startup.text } : { file: escaped(startup.file) })),
      ...(secret !== undefined && { private: contentOf(secret) }),
    },
  }
}

const time = (seconds: number): string => quantityText('time', seconds * 1000)

const readyFields = ({ console, press, tcp, exec, seconds, within_s }: DesiredReady): Fields => ({
  ...(console !== undefined && { console }),
  ...(press !== undefined && { press: escaped(press) }),
  ...(tcp !== undefined && { tcp }),
  ...(exec !== undefined && { exec: escaped(exec) }),
  ...(seconds !== undefined && { after: time(seconds) }),
  ...(within_s !== undefined && { within: time(within_s) }),
})

function segmentFields(node: DesiredNode, links: readonly DesiredLink[], ports: PortsByNode): Fields {
  const { kind, properties, segment } = node
  const device = segment?.everyPort.interface
  const own = Object.entries(segment?.ports ?? {}).map(([number, port]) => [number, portFields(kind, port)])
  const members = links.filter(({ memberOf }) => memberOf === node.name).map((link) => memberFields(link, ports))
  return {
    kind,
    ...commonFields(node),
    ...(typeof device === 'string' && { device: escaped(device) }),
    ...(allEscaped(properties) as Fields),
    ...(own.length > 0 && { ports: Object.fromEntries(own) }),
    ...(members.length > 0 && { members }),
  }
}

function portFields(kind: string, port: Readonly<Record<string, unknown>>): Fields {
  if (kindIfKnown(kind)?.hasVlans !== true) return allEscaped(port) as Fields
  return { ...(allEscaped(omit(port, 'type', 'vlan', 'ethertype')) as Fields), ...taggingOf(port) }
}

function memberFields(link: DesiredLink, ports: PortsByNode): unknown {
  const [other, own] = link.ends
  const fields = {
    ...(own.port_number !== undefined && { port: own.port_number }),
    ...taggingOf(own.port ?? other.port ?? {}),
    ...linkOptions(link),
  }
  const end = endText(other, ports)
  return Object.keys(fields).length === 0 ? end : { end, ...fields }
}

function linkFields(link: DesiredLink, ports: PortsByNode): unknown {
  const ends = link.ends.map((end) => endText(end, ports))
  const fields = linkOptions(link)
  return Object.keys(fields).length === 0 ? ends : { ends, ...fields }
}

const linkOptions = ({ name, suspend, capture, filters_ab, filters_ba }: DesiredLink): Fields => ({
  ...(name !== undefined && { name: escaped(name) }),
  ...(suspend && { down: true }),
  ...(capture !== undefined && { capture: capture.file === undefined ? true : escaped(capture.file) }),
  ...(allEscaped(impairmentFields(filters_ab, filters_ba)) as Fields),
})

/** The keys for both directions: filters that are equal in both are plain. */
export function impairmentFields(filters_ab: Filters, filters_ba: Filters): Fields {
  const isSame = (name: string) =>
    JSON.stringify(filters_ab[name as never]) === JSON.stringify(filters_ba[name as never])
  const of = (filters: Filters, isWanted: (name: string) => boolean) =>
    impairmentOf(Object.fromEntries(Object.entries(filters).filter(([name]) => isWanted(name))) as Filters)
  const [there, back] = [filters_ab, filters_ba].map((filters) => of(filters, (name) => !isSame(name)))
  return {
    ...of(filters_ab, isSame),
    ...(there !== undefined && Object.keys(there).length > 0 && { there }),
    ...(back !== undefined && Object.keys(back).length > 0 && { back }),
  }
}

/** `NODE:PORT`, with the shortest word that names the port. */
function endText({ node, adapter_number, port_number }: DesiredEnd, portsByNode: PortsByNode): string {
  const name = escaped(node)
  const ports = portsByNode.get(node)
  if (ports === undefined) return port_number === undefined ? name : `${name}:${port_number}`
  const found = ports.find((it) => it.adapter_number === adapter_number && it.port_number === port_number)
  if (ports.length === 1 && found !== undefined && portOf(ports, undefined) === found) return name
  const word = [found?.short_name, found?.name].find((it) => it !== undefined && portOf(ports, it) === found)
  return `${name}:${escaped(word ?? `${adapter_number}/${port_number}`)}`
}

const taskFields = ({ name, text, checks, points }: DesiredTask): Fields => ({
  name: escaped(name),
  ...(text !== '' && { text }),
  ...(checks.length > 0 && { checks: checks.map(escaped) }),
  ...(points !== 1 && { points }),
})

function checkFields(check: LabCheck, byDefault: number): Fields {
  const within = check.within_s === byDefault ? {} : { within: time(check.within_s) }
  const named = check.name === derivedName(check) ? {} : { name: escaped(check.name) }
  switch (check.check) {
    case 'ping':
      return { ...named, from: escaped(check.from), ping: escaped(check.to), ...within }
    case 'console':
      return { ...named, on: escaped(check.on), type: check.type, expect: check.expect, ...within }
    case 'link':
      return { ...named, link: escaped(check.link), verdict: check.verdict, ...within }
    case 'not':
      return { ...named, not: checkFields(check.of, 5) }
  }
}
