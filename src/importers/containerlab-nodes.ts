import type { Fields } from '../labfile/text.ts'
import { type Part, quoted } from './source.ts'

/** Why settings are left out, by their names. */
const reasons: Readonly<Record<string, string>> = {
  binds: 'nodes do not see files of the host',
  license: 'put it into the image, or enter it at the console',
  ports: 'the node is not in the management network',
  type: 'the image says which model the machine is',
  config: 'there are no templates of configurations',
  mtu: 'set it in the nodes',
  'mgmt-ipv4': 'the node is not in the management network',
  'mgmt-ipv6': 'addresses of nodes in the management network are of IPv4',
  privileged: 'a container has rights within its own namespaces alone',
  ...Object.fromEntries(
    ['env', 'env-files', 'cmd', 'entrypoint', 'user', 'runtime', 'network-mode', 'restart-policy', 'auto-remove'].map(
      (key) => [key, 'it applies only to containers'],
    ),
  ),
}
export const because = (key: string): string =>
  `is not imported${reasons[key] === undefined ? '' : `: ${reasons[key]}`}`

/** A node of the topology with its settings: its own, and those of its group, its kind and the defaults, which follow in this order. */
export class NodeSettings {
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
    return this.all(key)[0]
  }

  /** Whether a section has the setting, which does not count as read. */
  has(key: string): boolean {
    return this.#sections.some((section) => section.has(key))
  }

  /** The setting in all sections that have it, the nearest first. */
  all(key: string): Part[] {
    return this.#sections.map((section) => section.get(key)).filter((part) => !part.isAbsent)
  }

  /** The setting of all sections, in the order of the file from the defaults on; the nearest section wins. */
  members(key: string): Map<string, Part> {
    return new Map(this.#sections.toReversed().flatMap((section) => section.get(key).asObject().entries()))
  }
}
/** `startup-delay`, as a condition: what comes after the node waits for it. */
export function orderFields(node: NodeSettings): Fields {
  const delay = node.get('startup-delay')
  const seconds = delay?.numberOrNone()
  if (delay === undefined || seconds === undefined || seconds <= 0) return {}
  delay.change(
    `a node does not delay its own start: instead, nodes that come "after" it wait until ${seconds} s after its start`,
  )
  return { ready: { after: `${Math.min(3600, seconds)}s` } }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a key must not have
const isLabel = (key: string, text: string) => /^[^\u0000-\u001f\u007f]{1,100}$/.test(key) && text.length <= 1000

/** The labels of a node, but for those of the map, and its group. */
export function labelsOf(node: NodeSettings): Fields {
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

/** The file of a disk or program that the user must give: its name says the kind and the version. */
export function imageName(node: NodeSettings, kind: string, extension: string): string {
  const name = placeholderImage(node, kind, extension)
  node.get('image')?.change(`a container image is not a disk: provide the disk of the system as ${name}`)
  return name
}

/** The image of a node that cannot run: it keeps the version in mind. */
export function placeholderImage(node: NodeSettings, kind: string, extension: string): string {
  const part = node.get('image')
  const [, tag] = /:([\w][\w.-]{0,60})$/.exec(part?.textOrNone() ?? '') ?? []
  return `${kind}${tag === undefined || tag === 'latest' ? '' : `-${tag}`}.${extension}`.replaceAll(/[^\w.-]/g, '-')
}

export function leaveOutCommands(node: NodeSettings): void {
  node.get('exec')?.leaveOut('is not imported: type the commands at the console, or put them into the image')
}

const units: Readonly<Record<string, number>> = { k: 2 ** -10, m: 1, g: 2 ** 10 }
export function memoryOf(node: NodeSettings, key = 'memory'): Fields {
  const part = node.get(key)
  if (part === undefined) return {}
  const [, number, unit] = /^([\d.]+)\s*([kmg])i?b?$/i.exec(part.textOrNone() ?? '') ?? []
  const ram = Math.round(Number(number) * (units[unit?.toLowerCase() ?? ''] ?? Number.NaN))
  if (ram >= 1 && ram <= 1 << 24) return { ram }
  part.leaveOut(`is not imported: expected a size such as 2Gb, got ${quoted(part.value)}`)
  return {}
}

export function processorsOf(node: NodeSettings): Fields {
  const cpus = Math.ceil(node.get('cpu')?.numberOrNone() ?? 0)
  return cpus >= 1 && cpus <= 255 ? { cpus } : {}
}
