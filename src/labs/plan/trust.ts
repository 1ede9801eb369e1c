import type { Desired } from '../../labfile/desired.ts'
import { sha256, toHex } from '../../lib/crypto/secret.ts'
import { forbidden } from '../../lib/errors/api-error.ts'
import { counted } from '../../lib/text/counted.ts'
import { type ImageKindName, isImageKind } from '../../model/image.ts'
import type { HostAccess } from '../../model/kinds/host-access.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf, type NodeKindName } from '../../model/kinds/node.ts'
import { imageProperties } from '../../model/lab/archive-words.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { LabCheck } from '../../model/lab/task.ts'

/** What a file would run or open on the host, and where the file says so. */
export interface Untrusted extends HostAccess {
  /** Name of a node, or of a member of an archive. */
  readonly name: string
}

/** Decides which files of users may run programs and open files of the host. */
export interface FileTrust {
  /** Whether nodes may reach programs and files of the host at all: the service is in local mode. */
  isJudged(): boolean
  /** Whether the caller of the request may trust a file: a local client, or an administrator. */
  mayTrust(): boolean
  /** Whether a path is inside the directories of images. */
  isImage(kind: ImageKindName, path: string): Promise<boolean>
  /** Whether a file with this digest of what it runs and opens was trusted earlier. */
  has(digest: string): boolean
  add(digest: string): Promise<void>
}

/** Most entries that an error has. */
const maxShown = 100

/**
 * 403 `not-trusted` when a file would run programs or open files of the host, unless the client trusts it (`isTrusted`) or has
 * trusted the same before. Nothing has changed then.
 */
export async function requireTrust(
  trust: FileTrust | undefined,
  found: readonly Untrusted[],
  isTrusted: boolean,
): Promise<void> {
  if (trust === undefined || found.length === 0 || !trust.isJudged()) return
  if (!trust.mayTrust()) throw notTrusted(found, 'Only a client on this host, or an administrator, can trust it')
  const digest = await digestOf(found)
  if (isTrusted) return trust.add(digest)
  if (!trust.has(digest)) throw notTrusted(found, 'Trust it with trust=true (--trust) if you know where it is from')
}

/** 403 `not-trusted` for a content that is not remembered: the file of another archive may differ. */
export function requireTrusted(trust: FileTrust | undefined, found: readonly Untrusted[], isTrusted: boolean): void {
  if (trust === undefined || found.length === 0 || !trust.isJudged()) return
  if (!trust.mayTrust()) throw notTrusted(found, 'Only a client on this host, or an administrator, can trust it')
  if (!isTrusted) throw notTrusted(found, 'Trust it with trust=true (--trust) if you know where it is from')
}

function notTrusted(found: readonly Untrusted[], hint: string): Error {
  const [first] = found
  const more = found.length === 1 ? '' : ` and ${counted(found.length - 1, 'other setting')}`
  const what = first === undefined ? '' : `${first.name}: ${first.setting} ${first.value.slice(0, 200)}${more}`
  return forbidden(`The file would run programs or open files on this host (${what}). ${hint}`, {
    code: 'not-trusted',
    untrusted: found.slice(0, maxShown).map(({ name, setting, value }) => ({ name, setting, value })),
  })
}

/** Names do not count: a renamed node runs the same. */
async function digestOf(found: readonly Untrusted[]): Promise<string> {
  const all = found.map(({ setting, value }) => JSON.stringify([setting, value]))
  return toHex(await sha256([...new Set(all)].sort().join('\n')))
}

interface NodeSettings {
  readonly name: string
  readonly node_type: string
  readonly properties: Readonly<Record<string, unknown>>
  readonly ready?: { readonly press?: string | undefined } | null | undefined
}

/** What nodes would run and open. */
export async function untrustedNodes(
  trust: FileTrust | undefined,
  nodes: readonly NodeSettings[],
): Promise<Untrusted[]> {
  if (trust?.isJudged() !== true) return []
  const found: Untrusted[] = []
  for (const { name, node_type, properties, ready } of nodes) {
    if (!isKnownKind(node_type)) continue
    const { hostAccess, typedHostAccess } = kindOf(node_type)
    for (const it of hostAccess?.(properties) ?? []) found.push({ name, ...it })
    for (const setting of imageProperties({ node_type, properties })) {
      const value = properties[setting] as string
      const isInside = () => isImageKind(node_type) && trust.isImage(node_type, value)
      if (value.startsWith('/') && !(await isInside())) found.push({ name, setting, value })
    }
    if (typeof ready?.press === 'string')
      for (const it of typedHostAccess?.(ready.press, 'ready.press') ?? []) found.push({ name, ...it })
  }
  return found
}

/** What a lab file would run and open, by its nodes and by the lines that its checks type. */
export async function untrustedIn(trust: FileTrust | undefined, { nodes, checks }: Desired): Promise<Untrusted[]> {
  if (trust?.isJudged() !== true) return []
  const settings = nodes.map(({ name, kind, properties, configs, ready }) => ({
    name,
    node_type: kind,
    ready,
    properties: { ...properties, ...configFields(kind, configs) },
  }))
  return [...(await untrustedNodes(trust, settings)), ...untrustedLines(trust, checks, settings)]
}

/** What lines that checks type would run and open. */
export function untrustedLines(
  trust: FileTrust | undefined,
  checks: readonly LabCheck[],
  nodes: readonly Pick<NodeSettings, 'name' | 'node_type'>[],
): Untrusted[] {
  if (trust?.isJudged() !== true) return []
  const kindsByName = new Map(
    nodes.flatMap(({ name, node_type }) => (isKnownKind(node_type) ? [[name, node_type] as const] : [])),
  )
  return checks.flatMap((check) => typedIn(check, kindsByName))
}

/** The texts of configurations, under the members by which a node takes them. */
function configFields(kind: string, configs: Desired['nodes'][number]['configs']): Record<string, string> {
  const { configs: access = {} }: Pick<KindDescriptor, 'configs'> = isKnownKind(kind) ? kindOf(kind) : {}
  return Object.fromEntries(
    Object.entries(configs).flatMap(([name, { text }]) => (access[name] ? [[access[name].field, text]] : [])),
  )
}

function typedIn(check: LabCheck, kindsByName: ReadonlyMap<string, NodeKindName>): Untrusted[] {
  if (check.check === 'not') return typedIn(check.of, kindsByName)
  if (check.check !== 'console') return []
  const kind = kindsByName.get(check.on)
  const access = kind && kindOf(kind).typedHostAccess?.(check.type, 'type')
  return (access ?? []).map((it) => ({ name: check.on, ...it }))
}
