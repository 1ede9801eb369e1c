import { Check } from '@sinclair/typebox/value'
import type { Fields } from '../labfile/text.ts'
import { containerSettings, forwarding } from '../model/kinds/container.ts'
import { imageNeeds } from '../model/kinds/image-names.ts'
import { limitOf } from './container-words.ts'
import { type Part, quoted } from './source.ts'

/** Where the image of a definition has the files of a configuration; the first one is meant where no name is given. */
const definitions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  frr: { 'node.cfg': '/config/node.cfg', 'boot.sh': '/config/boot.sh', protocols: '/config/protocols' },
  nginx: { 'boot.sh': '/boot.sh' },
  'net-tools': { 'boot.sh': '/boot.sh' },
  dnsmasq: { hosts: '/etc/banner_add_hosts', 'dnsmasq.conf': '/etc/dnsmasq.conf', 'boot.sh': '/boot.sh' },
  radius: {
    'radiusd.conf': '/etc/freeradius/3.0/radiusd.conf',
    users: '/etc/freeradius/3.0/mods-config/files/authorize',
    'boot.sh': '/boot.sh',
  },
  syslog: { 'syslog-ng.conf': '/etc/syslog-ng/syslog-ng.conf', 'boot.sh': '/boot.sh' },
  tacplus: { 'tac_plus.conf': '/etc/tac_plus.conf', 'boot.sh': '/boot.sh' },
}

/** Whether a node definition of CML is a container that can run here. */
export const isContainerDefinition = (definition: string): boolean => Object.hasOwn(definitions, definition)

/** A file of the configuration of a node. */
export interface ConfigFile {
  readonly part: Part
  readonly name: string | undefined
  readonly text: string
}

/** A container of CML, but for its adapters. `links`: how many of its interfaces have links. */
export function readContainer(
  part: Part,
  definition: string,
  { image, configs, links }: { image: string; configs: readonly ConfigFile[]; links: number },
): Fields {
  const paths = definitions[definition] ?? {}
  const { symbol, capabilities } = imageNeeds(definition)
  const files: { path: string; text: string }[] = []
  const environment: string[] = []
  for (const { part: at, name = Object.keys(paths)[0] ?? '', text } of configs) {
    const path = Object.hasOwn(paths, name) ? paths[name] : undefined
    if (path !== undefined) files.push({ path, text })
    else if (name === 'environment') environment.push(...variablesOf(at, text))
    else if (meant(text).length > 0)
      at.leaveOut(`the file ${quoted(name)} is not imported: a container has no place for it`)
  }
  // The definition runs the script in the container after its start.
  const boot = files.find(({ path }) => path.endsWith('/boot.sh'))
  return {
    kind: 'container',
    image,
    ...limitOf(part.get('ram'), 'ram'),
    ...limitOf(part.get('cpus'), 'cpus'),
    ...(symbol !== '' && { symbol }),
    ...(environment.length > 0 && { environment: environment.join('\n') }),
    ...(files.length > 0 && { files }),
    ...(links > 1 && { sysctls: forwarding(links).join('\n') }),
    ...(capabilities.length > 0 && { capabilities: [...capabilities] }),
    ...(boot !== undefined && { exec: `/bin/bash ${boot.path}` }),
  }
}

function variablesOf(part: Part, text: string): string[] {
  return meant(text).filter((line) => {
    const isVariable = Check(containerSettings.environment, line)
    if (!isVariable) part.leaveOut(`${quoted(line)} is not imported: expected NAME=value`)
    return isVariable
  })
}

/** The lines of a file that say something. */
const meant = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
