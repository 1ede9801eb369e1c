import { Check } from '@sinclair/typebox/value'
import type { Fields } from '../labfile/text.ts'
import {
  ContainerCreate,
  ContainerNode,
  container,
  containerSettings,
  dockerHost,
  forwarding,
  interfacesPath,
  interfacesUp,
} from '../model/kinds/container.ts'
import { containerImageFile, imageCommands, imageNeeds } from '../model/kinds/image-names.ts'
import { type GivenContainerFile, limitOf, shellText } from './container-words.ts'
import { type Part, quoted, Source } from './source.ts'

export { interfacesPath }

interface DockerInput {
  /** How many of its ports have links. */
  readonly links: number
  /** Its configuration of interfaces, with a text or a file. */
  readonly interfaces?: Pick<GivenContainerFile, 'text' | 'file'> | undefined
}

const { maximum: maxAdapters = 1 } = containerSettings.adapters

/** Settings that a container has nothing for, and why. */
const withoutPlace: Readonly<Record<string, string>> = {
  extra_volumes: 'a container keeps all that it writes; the content of these directories is not brought',
}

/** What a server chooses itself, or what belongs to consoles that containers do not have here. */
const unused = new Set([
  ...['container_id', 'aux', 'aux_type', 'mac_address', 'node_directory', 'status', 'console', 'name'],
  ...['console_http_port', 'console_http_path', 'console_resolution', 'image', 'adapters', 'start_command'],
  ...['environment', 'extra_hosts', 'usage', 'console_type', 'custom_adapters', 'memory', 'cpus'],
])

/** A docker node of GNS3, by its settings, as one of kind container. Undefined: it names no image. */
export function dockerContainer(
  settings: ReadonlyMap<string, Part>,
  { links, interfaces }: DockerInput,
): { readonly fields: Fields; readonly image: string; readonly hint: string | undefined } | undefined {
  const textOf = (key: string) => settings.get(key)?.textOrNone() ?? ''
  const image = textOf('image').trim()
  if (image === '') return undefined
  const file = containerImageFile(image)
  settings.get('image')?.change(`the image ${quoted(image)} is the archive ${file} here`)
  const { symbol, capabilities } = imageNeeds(image)
  const files: GivenContainerFile[] = interfaces === undefined ? [] : [{ path: `/${interfacesPath}`, ...interfaces }]
  const fields = {
    image: file,
    symbol,
    console_type: consoleOf(settings.get('console_type')),
    usage: textOf('usage'),
    adapters: adaptersOf(settings.get('adapters')),
    command: shellText(settings.get('start_command'), 'start_command'),
    environment: environmentOf(settings.get('environment')),
    hosts: hostsOf(settings.get('extra_hosts')),
    files,
    sysctls: forwarding(links).join('\n'),
    capabilities: [...capabilities],
    exec: interfaces === undefined ? '' : interfacesUp,
    ...limitOf(settings.get('memory'), 'ram'),
    ...limitOf(settings.get('cpus'), 'cpus'),
  }
  for (const [key, part] of settings) leaveOutOther(key, part)
  const defaults: Fields = { adapters: 1, console_type: 'telnet' }
  const isSet = ([key, value]: [string, string | number | readonly unknown[]]) =>
    key in defaults ? value !== defaults[key] : typeof value === 'number' || value.length > 0
  const given = Object.entries(fields).filter(isSet)
  return { fields: Object.fromEntries(given), image, hint: imageCommands(image) }
}

/** What a docker node of an archive becomes. */
export interface ArchivedContainer {
  readonly kind: { readonly node_type: string; readonly port_name_format: string }
  readonly fields: Fields
  /** Names of the settings that it does not get. */
  readonly leftOut: readonly string[]
}

/** A node of an archive as one of kind container. Undefined: it names no image. */
export function archivedContainer(
  properties: Readonly<Record<string, unknown>>,
  consoleType: unknown,
  input: DockerInput,
): ArchivedContainer | undefined {
  const source = new Source('{}')
  const settings = source.root.with({ ...properties, console_type: consoleType ?? null })
  const read = dockerContainer(new Map(settings.entries()), input)
  if (read === undefined) return undefined
  const left = source.leftOut.filter(({ effect }) => effect === 'left-out')
  const { symbol: _, ...all } = read.fields
  const { properties: known } = ContainerCreate
  const fits = ([key, value]: [string, unknown]) => Check(known[key as keyof typeof known], value)
  const wrong = Object.entries(all).flatMap((it) => (fits(it) ? [] : [it[0] === 'command' ? 'start_command' : it[0]]))
  const fields = Object.fromEntries(Object.entries(all).filter(fits))
  const { mac_address, adapters = 1 } = properties
  const hasAddress = typeof mac_address === 'string' && container.addressIssue({ mac_address, adapters }) === undefined
  return {
    kind: { node_type: container.name, port_name_format: container.portNameFormat },
    fields: {
      ...fields,
      ...(hasAddress && Check(ContainerNode.properties.mac_address, mac_address) && { mac_address }),
    },
    leftOut: [...new Set([...left.map(({ path }) => path.split(/[.[]/)[0] ?? path), ...wrong])],
  }
}

function leaveOutOther(key: string, part: Part): void {
  const { value } = part
  const isNothing = part.isAbsent || value === '' || value === 0 || (part.isList && part.items().length === 0)
  if (unused.has(key) || isNothing) return
  const reason = Object.hasOwn(withoutPlace, key) ? withoutPlace[key] : 'a container has no such setting'
  part.leaveOut(`is not imported: ${reason}`)
}

function consoleOf(part: Part | undefined): string {
  const word = part?.textOrNone() ?? 'telnet'
  if (word === 'telnet' || word === 'none') return word
  part?.leaveOut(`is not imported: the console of a container is the terminal of its command, not ${quoted(word)}`)
  return 'telnet'
}

function adaptersOf(part: Part | undefined): number {
  const number = part?.numberOrNone() ?? 1
  if (Check(containerSettings.adapters, number)) return number
  part?.leaveOut(`is not imported: expected a number of adapters from 0 to ${maxAdapters}, got ${quoted(part.value)}`)
  return number > maxAdapters ? maxAdapters : 1
}

/** The variables, one a line. Those that begin with GNS3_ are its own. */
function environmentOf(part: Part | undefined): string {
  const lines = linesOf(part)
  const isVariable = (line: string) => Check(containerSettings.environment, line) && !/^GNS3_/.test(line)
  for (const line of lines)
    if (!isVariable(line)) part?.leaveOut(`${quoted(line)} is not imported: expected NAME=value, without GNS3_`)
  return lines.filter(isVariable).join('\n')
}

/** The lines of `/etc/hosts` beside those that each container has. */
function hostsOf(part: Part | undefined): string {
  const lines = linesOf(part).flatMap((line) => {
    const [, host, address] = dockerHost.exec(line) ?? []
    if (address !== undefined) return [`${address} ${host}`]
    part?.leaveOut(`${quoted(line)} is not imported: expected NAME:ADDRESS`)
    return []
  })
  return lines.join('\n')
}

const linesOf = (part: Part | undefined): string[] =>
  (part?.textOrNone() ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
