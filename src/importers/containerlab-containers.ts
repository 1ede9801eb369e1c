import { Check } from '@sinclair/typebox/value'
import { isOutside } from '../labfile/files.ts'
import type { Fields } from '../labfile/text.ts'
import { counted } from '../lib/text/counted.ts'
import { baseCapabilities, ContainerFile, containerSettings, forwarding } from '../model/kinds/container.ts'
import { containerImageFile, imageCommands, imageNeeds } from '../model/kinds/image-names.ts'
import { type GivenContainerFile, limitOf, shellText } from './container-words.ts'
import type { ReadEnd } from './containerlab-links.ts'
import { memoryOf, type NodeSettings } from './containerlab-nodes.ts'
import { byNumbers } from './draft.ts'
import type { FilesAt } from './files-beside.ts'
import { type Part, quoted } from './source.ts'

export interface ContainerInput {
  /** The name of its image. */
  readonly image: Part
  readonly ports: ReadonlyMap<string, ReadEnd>
  readonly filesAt: FilesAt | undefined
  /** Counts values of a part that many nodes may have. */
  readonly count: (part: Part, values: number) => void
}

interface ReadContainer {
  readonly fields: Fields
  readonly hint: string | undefined
  readonly portOf: (port: string) => string
}

const limits = { adapters: containerSettings.adapters.maximum ?? 1, files: containerSettings.files.maxItems ?? 1 }

/** Settings of containers that have nothing in their place, and why. */
const withoutPlace = {
  publish: 'ports of the host are in ports',
  'cpu-set': 'a container has a limit of processors (cpus), and any of the host',
  'env-files': 'write the variables into env',
  'startup-config': 'bind it to the path at which the image reads it',
  license: 'bind it to the path at which the image reads it',
  devices: 'a container has no devices of the host',
  runtime: '',
  'restart-policy': '',
  'auto-remove': '',
} as const

/** An ordinary container of containerlab as a node of kind container. */
export function readContainer(node: NodeSettings, input: ContainerInput): ReadContainer {
  const { ports } = input
  const image = input.image.text().trim()
  const file = containerImageFile(image)
  input.image.change(`the image ${quoted(image)} is the archive ${file} here`)
  const adapters = adaptersOf(ports)
  const { lines, scripts } = execOf(node, adapters, input)
  const files = [...scripts, ...filesOf(node, limits.files - scripts.length, input)]
  const sysctls = sysctlsOf(node, input)
  const needs = imageNeeds(image)
  const capabilities = capabilitiesOf(node, needs.capabilities)
  leaveOutOthers(node)
  const fields = {
    kind: 'container',
    image: file,
    symbol: needs.symbol,
    adapters: Math.max(0, ...adapters.values()) + 1,
    command: shellText(node.get('cmd'), 'cmd'),
    entrypoint: shellText(node.get('entrypoint'), 'entrypoint'),
    environment: environmentOf(node, input).join('\n'),
    files,
    sysctls: sysctls.join('\n'),
    capabilities,
    consoles: needs.consoles.length === 0 ? [] : [...needs.consoles, ...containerSettings.consoles.default],
    exec: lines.join('\n'),
    ...limitOf(node.get('memory'), 'ram', Number(memoryOf(node).ram ?? 0)),
    ...limitOf(node.get('cpu'), 'cpus'),
    user: userOf(node),
    ...shmOf(node),
  }
  const given = Object.entries(fields).filter(([, value]) => typeof value === 'number' || value.length > 0)
  const portOf = (port: string) => (adapters.has(port) ? `eth${adapters.get(port)}` : port)
  return { fields: Object.fromEntries(given), hint: imageCommands(image), portOf }
}

/** The adapters by the names of interfaces. `eth0` is that of the management network, which has no link. */
function adaptersOf(ports: ReadonlyMap<string, ReadEnd>): Map<string, number> {
  const adapters = new Map<string, number>()
  for (const port of ports.keys()) {
    const [, digits] = /^eth(0|[1-9]\d?)$/.exec(port) ?? []
    if (digits !== undefined && Number(digits) < limits.adapters) adapters.set(port, Number(digits))
  }
  const taken = new Set(adapters.values())
  let next = 1
  for (const port of [...ports.keys()].filter((it) => !adapters.has(it)).sort(byNumbers)) {
    while (taken.has(next)) next += 1
    const part = ports.get(port)?.part
    if (next >= limits.adapters) {
      part?.leaveOut(`is not imported: a container has at most ${limits.adapters} adapters`)
      continue
    }
    taken.add(next)
    adapters.set(port, next)
    part?.change(`${quoted(port)} becomes eth${next}: the adapters of a container are eth0, eth1 and so on`)
  }
  return adapters
}

function environmentOf(node: NodeSettings, { count }: ContainerInput): string[] {
  const all = node.members('env')
  count(node.part, all.size)
  return [...all].flatMap(([name, part]) => {
    const value = part.isAbsent ? '' : part.textOrNone()
    if (value === undefined) return []
    const line = `${name}=${value}`
    const isOfHost = name === '__IMPORT_ENVS'
    if (Check(containerSettings.environment, line) && !line.includes('\n') && !isOfHost) return [line]
    part.leaveOut(
      isOfHost
        ? 'is not imported: the variables of the computer are not read'
        : 'is not imported: a variable has a name and one line',
    )
    return []
  })
}

function sysctlsOf(node: NodeSettings, { count, ports }: ContainerInput): string[] {
  const all = node.members('sysctls')
  count(node.part, all.size)
  const lines = [...all].flatMap(([name, part]) => {
    const value = part.textOrNone()
    if (value === undefined) return []
    const line = `${name}=${value}`
    if (Check(containerSettings.sysctls, line) && !line.includes('\n')) return [line]
    part.leaveOut('is not imported: a container sets only parameters of its own network, net.*')
    return []
  })
  return all.has('net.ipv4.ip_forward') ? lines : [...forwarding(ports.size), ...lines]
}

/** Those that the programs of the image need, such as zebra of FRR, and `cap-add`. */
function capabilitiesOf(node: NodeSettings, needed: readonly string[]): string[] {
  const found = new Set(needed)
  for (const part of node.all('cap-add').flatMap((it) => it.itemsOrNone())) {
    const word = part.textOrNone()?.toUpperCase().replace(/^CAP_/, '')
    if (word === undefined || baseCapabilities.includes(word)) continue
    if (Check(containerSettings.capabilities.items, word)) found.add(word)
    else part.leaveOut(`is not imported: a container has no capability ${quoted(word)} here`)
  }
  return [...found]
}

/** The commands after the start, those of the defaults first, after the addresses that links give. Of a command with lines in quotes a script is made. */
function execOf(
  node: NodeSettings,
  adapters: ReadonlyMap<string, number>,
  { ports, count }: ContainerInput,
): { lines: string[]; scripts: GivenContainerFile[] } {
  const scripts: GivenContainerFile[] = []
  const commands = [...node.all('exec')].reverse().flatMap((section) => {
    const parts = section.itemsOrNone()
    count(section, parts.length)
    return parts
  })
  const addresses = [...ports.values()].flatMap((end) =>
    end.addresses.map((address) => `ip addr add ${address} dev eth${adapters.get(end.port)}`),
  )
  const lines = commands.flatMap((part) => {
    const text = named(node, part.textOrNone() ?? '').replace(/\n+$/, '')
    const rows = text.split('\n')
    if (rows.length === 1 || !/["']/.test(text)) return rows.filter((it) => it.trim() !== '')
    if (scripts.length === limits.files) {
      part.leaveOut(`is not imported: a container begins with at most ${limits.files} files`)
      return []
    }
    const path = `/run/exec-${scripts.length + 1}.sh`
    scripts.push({ path, text: `${text}\n` })
    part.change(`a command of several lines becomes the file ${path} of the container`)
    return [`sh ${path}`]
  })
  return { lines: [...addresses, ...lines], scripts }
}

const named = (node: NodeSettings, text: string): string => text.replaceAll('__clabNodeName__', node.name.slice(0, 255))

/** The files of `binds`: the nearest section that names a path wins. */
function filesOf(node: NodeSettings, most: number, { filesAt, count }: ContainerInput): GivenContainerFile[] {
  const files = new Map<string, GivenContainerFile>()
  for (const section of node.all('binds')) {
    const parts = section.itemsOrNone()
    count(section, parts.length)
    for (const part of parts) {
      const text = part.textOrNone()
      if (text === undefined) continue
      const found = boundFiles(named(node, text), filesAt)
      if (typeof found === 'string') {
        part.leaveOut(`is not imported: ${found}`)
        continue
      }
      count(part, found.length)
      const fresh = found.filter(({ path }) => !files.has(path))
      const texts = fresh.filter(({ isText }) => isText)
      const room = texts.slice(0, most - files.size)
      const lost = fresh.length - room.length
      if (lost > 0)
        part.leaveOut(
          `${counted(lost, 'file')} not imported: a container begins with at most ${limits.files} files, which have at most 1 MiB of text`,
        )
      for (const { isText: _, ...file } of room) files.set(file.path, file)
    }
  }
  return [...files.values()]
}

/** The files that one bind brings into a container; a text is the reason why it brings none. */
function boundFiles(bind: string, filesAt: FilesAt | undefined): (GivenContainerFile & { isText: boolean })[] | string {
  const [, from = '', to] = /^([^:]+):([^:]+)(?::[\w,]*)?$/.exec(bind) ?? []
  if (to === undefined) return `expected a file and its path in the container, got ${quoted(bind)}`
  if (/docker\.sock$|containerd\.sock$/.test(from)) return 'no container gets the socket of Docker'
  if (/^__clab/.test(from)) return `${quoted(from)} is in a directory that containerlab makes`
  if (/^[/~]/.test(from)) return `${quoted(from)} is a path of the host; copy it below the directory of the topology`
  if (isOutside(from)) return `${quoted(from)} is not in the directory of the topology; copy it there`
  const source = from.replace(/^(\.\/+)+/, '').replace(/\/+$/, '')
  const target = to.replace(/\/+$/, '')
  const files = (filesAt?.(source) ?? [{ path: source, isText: true, isProgram: false }]).map((it) => ({
    path: `${target}${it.path.slice(source.length)}`,
    file: `./${it.path}`,
    ...((it.isProgram || it.path.endsWith('.sh')) && { mode: '0755' }),
    isText: it.isText,
  }))
  if (!files.some(({ isText }) => isText))
    return `there is no text file ${quoted(from)} in the directory of the topology`
  const wrong = files.find(({ path }) => !Check(ContainerFile.properties.path, path))
  return wrong === undefined ? files : `${quoted(wrong.path)} is not the absolute path of a file`
}

/** A user by its number; the image alone knows names. */
function userOf(node: NodeSettings): string {
  const part = node.get('user')
  const user = part?.textOrNone() ?? ''
  if (Check(containerSettings.user, user)) return user
  part?.leaveOut('is not imported: expected the number of a user, such as 1000 or 1000:1000')
  return ''
}

function shmOf(node: NodeSettings): Fields {
  const size = memoryOf(node, 'shm-size').ram
  if (size === undefined || Check(containerSettings.shm, size)) return size === undefined ? {} : { shm: size }
  node.get('shm-size')?.leaveOut('is not imported: a container has no such size of /dev/shm')
  return {}
}

/** Leaves out what has nothing in its place. Its own network is what a container has without a management network, too. */
function leaveOutOthers(node: NodeSettings): void {
  const network = node.get('network-mode')
  const mode = network?.textOrNone() ?? 'none'
  if (!/^(none|bridge|default)$/.test(mode))
    network?.leaveOut('is not imported: a container has a network of its own, with its links alone')
  for (const [key, reason] of Object.entries(withoutPlace))
    for (const part of node.all(key)) part.leaveOut(`is not imported${reason === '' ? '' : `: ${reason}`}`)
}
