import { v3 } from 'uuid'
import { builtInId } from '../../labs/templates.ts'
import { kinds } from '../../model/kinds/index.ts'
import type { Gns3Kind, KindDescriptor } from '../../model/kinds/kind.ts'
import { runsAlwaysInGns3 } from '../../model/kinds/node.ts'
import { unalias } from '../../server/http/path.ts'

const list: readonly KindDescriptor[] = kinds

/** The kinds that GNS3 has, too. */
export const sharedKinds: readonly (readonly [KindDescriptor, Gns3Kind])[] = list.flatMap((kind) =>
  kind.gns3 === undefined ? [] : [[kind, kind.gns3] as const],
)

const theirs = new Map(sharedKinds.map(([{ name }, { nodeType }]) => [name, nodeType]))
const ours = new Map(sharedKinds.map(([{ name }, { nodeType }]) => [nodeType, name]))
/** The word of GNS3 for a kind of ours, and the reverse; other words stay. */
export const theirKind = (word: string): string => theirs.get(word) ?? word
export const ourKind = (word: string): string => ours.get(word) ?? word

/**
 * The built-in templates of GNS3, by their ids: UUIDs of version 3 of the node types, in the name space of DNS (RFC 9562, 5.3).
 */
const templates = sharedKinds.flatMap(([{ name, template }, { nodeType }]) =>
  template === undefined ? [] : [[v3(nodeType, v3.DNS), builtInId(name)] as const],
)
const ourTemplates = new Map(templates)
const theirTemplates = new Map(templates.map(([id, own]) => [own, id]))
export const ourTemplate = (id: string): string => ourTemplates.get(id.toLowerCase()) ?? id
export const theirTemplate = (id: string): string => theirTemplates.get(id) ?? id

/** Replaces the words of kinds in the paths of files of projects. */
const inDirectory = (text: string, word: (kind: string) => string): string =>
  text.replace(/(?<![^/\s"'])project-files\/([^/]+)/g, (_, kind: string) => `project-files/${word(kind)}`)
/** A text with paths of files in the words of GNS3. */
export const theirFile = (text: string): string => inDirectory(text, theirKind)

/** The URL of an action of a compute in the words of GNS3. */
export const theirUrl = (url: string): string => url.replace(/(?<=\/v2\/(?:compute|computes\/[^/]+)\/)[^/]+/, theirKind)

const pathWords = { ...Object.fromEntries(ours), gns3vm: 'appliancevm' }
/** Paths with words of kinds: of the compute interface, and of computes. In other paths a segment may be a name of a user. */
const hasKinds = /^\/(v1|v2\/compute|v2\/computes|v2\/gns3vm)(\/|$)/
/** GNS3 3 has other paths for captures. */
const captures = { 'capture/start': 'start_capture', 'capture/stop': 'stop_capture', 'capture/stream': 'pcap' } as const

/** What a controller gets that asks a node to stop that always runs: it asks all nodes of a project, and later starts others alone. */
export const runsOnPath = (project: string, kind: string, node: string): string =>
  `/v2/compute/projects/${project}/${kind}/nodes/${node}/runs-on`
const stopPath = /^\/v2\/compute\/projects\/([^/]+)\/([^/]+)\/nodes\/([^/]+)\/stop$/

/** Converts a path of a GNS3 client to ours. */
export function ourPath(path: string): string {
  if (path.startsWith('/v3/compute/')) {
    const older = path.replace(
      /\/(capture\/(?:start|stop|stream))$/,
      (_, it: keyof typeof captures) => `/${captures[it]}`,
    )
    return ourPath(`/v2${older.slice('/v3'.length)}`)
  }
  // The id of a symbol is a path: `:/symbols/router.svg`.
  const symbol = /^\/v2\/symbols\/(.+)\/(raw|dimensions)$/.exec(path)
  if (symbol !== null) return `/v2/symbols/${(symbol[1] ?? '').replaceAll('/', '%2F')}/${symbol[2]}`
  const file = path.indexOf('/files/project-files/')
  if (file >= 0) {
    const [head, tail] = [path.slice(0, file), path.slice(file + '/files/'.length)]
    return `${ourPath(head)}/files/${inDirectory(tail, ourKind)}`
  }
  if (path.includes('/templates/')) return path.replace(/[0-9a-f-]{36}/gi, ourTemplate)
  if (!hasKinds.test(path)) return path
  const named = unalias(path, pathWords)
  const [, project = '', kind = '', node = ''] = stopPath.exec(named) ?? []
  return runsAlwaysInGns3(kind) ? runsOnPath(project, kind, node) : named
}
