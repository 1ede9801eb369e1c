import { Check } from '@sinclair/typebox/value'
import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, badRequest } from '../../lib/errors/api-error.ts'
import { withoutSeparators } from '../../lib/errors/project-name.ts'
import { Revert } from '../../lib/revert.ts'
import { quotedPath } from '../../lib/text/escape.ts'
import type { ProjectScope } from '../../model/access/project-scope.ts'
import { type ImageKindName, isImageKind } from '../../model/image.ts'
import { imageProperties, kindOfDirectory, kindOfWord } from '../../model/lab/archive-words.ts'
import { freeName, nameKey } from '../../model/lab/names.ts'
import { isKnownKind, type LabNodeNotCreated } from '../../model/lab/node.ts'
import type { LabProject } from '../../model/lab/project.ts'
import { isUuid } from '../../model/schema/fields.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import { Changes } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf } from '../lab/node-on-compute.ts'
import { notCreated } from '../lab/placeholder-view.ts'
import { storedValue } from '../lab/store.ts'
import { requireNodesWithin } from '../lab/token-limits.ts'
import { joinLinks, makeNode } from '../nodes/placeholders.ts'
import {
  type FileTrust,
  requireTrust,
  requireTrusted,
  type Untrusted,
  untrustedLines,
  untrustedNodes,
} from '../plan/trust.ts'
import type { Labs } from '../service.ts'
import { contentOf, maxSnapshots } from '../snapshots/snapshots.ts'
import { tasksChanges } from '../tasks/tasks.ts'
import { renamed, requireZip, snapshotList, snapshotsDirectory } from './archive.ts'
import { type ArchivedLab, archivedLab, documentName, moreName, SnapshotList } from './archive-document.ts'
import { interfacesIn } from './archived-containers.ts'
import { judgedContent } from './archived-content.ts'
import type { OpenArchive } from './zip-archives.ts'

/** Largest document of an archive, bytes: it is read as a whole. */
const maxDocumentBytes = 64 << 20
/** The longest name of a file (NAME_MAX, limits.h of Linux). */
const maxNameBytes = 255
const encoder = new TextEncoder()

interface ImportInput {
  readonly project_id: string
  readonly name?: string | undefined
  /** Stores the images of the archive on the compute. Otherwise nodes whose images it lacks become placeholders. */
  readonly storesImages: boolean
  readonly check: (name: string) => void
  /** Whether a project of this id on any compute of the fleet is another one. */
  readonly asksAll: boolean
  /** The projects of the client. */
  readonly scope?: ProjectScope | undefined
  readonly conventions?: Conventions | undefined
  /** Whether the client trusts the archive: it may run programs and open files of the host. */
  readonly isTrusted: boolean
}

/** The project of an archive, and the settings of the archive that it did not get. */
export interface ImportedLab {
  readonly project: LabProject
  readonly leftOut: readonly string[]
  readonly cannotRun: readonly LabNodeNotCreated[]
}

/** Makes a closed project from an archive. 403 for one that is not trusted, 400 for a malformed archive, 409, 413, 507. A failure leaves nothing. */
export async function importLab(
  labs: Labs,
  input: ImportInput,
  content: ReadableStream<Uint8Array>,
  agentFor: ComputeAgents,
): Promise<ImportedLab> {
  await using archive = await requireZip(labs).open(content)
  // Awaited here, as the archive must stay open until this has ended.
  return await importOpened(labs, input, archive, agentFor)
}

/** Opens a project of GNS3 on the disk of this host. One that is not there yet is imported under its id. 400, 403, 404, 409, 413, 501, 507. */
export async function loadLab(
  labs: Labs | undefined,
  { path, isTrusted }: { readonly path: string; readonly isTrusted: boolean },
  agentFor: ComputeAgents,
): Promise<LabProject> {
  if (labs?.hostProjects === undefined)
    throw new ApiError(501, 'This service cannot load projects from disk: import an archive of the project')
  await using archive = await labs.hostProjects.open(path)
  const { project_id } = ((await jsonOf(archive, documentName)) ?? {}) as { project_id?: unknown }
  if (typeof project_id !== 'string' || !isUuid(project_id))
    throw badRequest('path: the file is not a GNS3 project: its project_id is not a UUID')
  const id = project_id.toLowerCase()
  const input = { project_id: id, storesImages: false, check: () => {}, asksAll: false, isTrusted }
  if (labs.registry.nameOf(id) === undefined) await importOpened(labs, input, archive, agentFor)
  return labs.lifecycle.open(id, agentFor)
}

async function importOpened(
  labs: Labs,
  { project_id, name, storesImages, check, asksAll, scope, conventions, isTrusted }: ImportInput,
  archive: OpenArchive,
  agentFor: ComputeAgents,
): Promise<ImportedLab> {
  const whole = await readWhole(archive, project_id)
  const { settings, name: own, leftOut } = whole.main.read
  await requireTrust(labs.trust, await untrustedContent(labs.trust, whole.main.read), isTrusted)
  requireNodesWithin(agentFor.limits, whole.main.read.nodes.length)
  const input = {
    ...settings,
    project_id,
    name: await labs.registry.freeName(name ?? withoutSeparators(own), conventions?.labName),
  }
  check(input.name)
  await using revert = new Revert(ignore('the client gets the first error'))
  const judge: Judge = {
    lab: async (of) => requireTrust(labs.trust, await untrustedContent(labs.trust, of), isTrusted),
    content: labs.trust?.isJudged() ? (found) => requireTrusted(labs.trust, found, isTrusted) : undefined,
  }
  const cannotRun: LabNodeNotCreated[] = []
  const fill = async (lab: Lab) => {
    await fillFrom(labs, lab, whole, { revert: storesImages ? revert : undefined, judge, agentFor })
    cannotRun.push(...[...lab.document.nodes.values()].flatMap((node) => notCreated(node) ?? []))
  }
  const project = await labs.creation.build(input, { agentFor, asksAll, scope }, fill)
  revert.commit()
  return { project, leftOut, cannotRun }
}

/**
 * Fills an empty lab, on its first compute, with the content of an archive. An archive of the same project keeps its ids. Images are not
 * stored. After a failure the caller must remove the documents of snapshots, and what was made on the compute.
 */
export async function fillFromArchive(
  labs: Labs,
  lab: Lab,
  content: ReadableStream<Uint8Array>,
  agentFor: ComputeAgents,
): Promise<void> {
  await using archive = await requireZip(labs).open(content)
  await fillFrom(labs, lab, await readWhole(archive, lab.id), { revert: undefined, judge: ofOwnLab, agentFor })
}

/** Judges what an archive would run and open on the host. */
interface Judge {
  lab(read: Pick<ArchivedLab, 'nodes' | 'tasks'>): Promise<void>
  /** Absent: all files of the archive are taken. */
  readonly content?: ((found: readonly Untrusted[]) => void) | undefined
}

/** A lab of the service that moves has been judged when it was made. */
const ofOwnLab: Judge = { lab: async () => {} }

/** What the nodes of an archive, and the checks of its tasks, would run and open. */
const untrustedContent = async (
  trust: FileTrust | undefined,
  { nodes, tasks }: Pick<ArchivedLab, 'nodes' | 'tasks'>,
): Promise<Untrusted[]> => [
  ...(await untrustedNodes(trust, nodes)),
  ...untrustedLines(trust, tasks?.checks ?? [], nodes),
]

/** The content of a member, which is read once. `path`: where it goes. */
async function readJudged(
  archive: OpenArchive,
  member: string,
  path: string,
  { content: judge }: Judge,
): Promise<ReadableStream<Uint8Array>> {
  const content = await archive.read(member)
  return judge === undefined ? content : judgedContent(path, content, judge)
}

/** An archive whose documents were read. */
interface WholeArchive {
  readonly archive: OpenArchive
  readonly main: ReadArchive
  readonly snapshots: readonly ArchivedSnapshot[]
  /** New ids, by those of the archive. */
  readonly ids: Map<string, string>
}

async function readWhole(archive: OpenArchive, projectId: string): Promise<WholeArchive> {
  const ids = new Map<string, string>()
  const main = await readArchive(archive, projectId, ids)
  const { read, files } = main
  // An image that is not in the archive may be there under another name.
  for (const [name, of] of imagesBeside(read)) if (!files.images.has(name)) files.images.set(name, of)
  return { archive, main, snapshots: await snapshotsIn(archive), ids }
}

/** `revert`: removes the images that are stored; without it none are. */
async function fillFrom(
  labs: Labs,
  lab: Lab,
  { archive, main, snapshots, ids }: WholeArchive,
  { revert, judge, agentFor }: { revert: Revert | undefined; judge: Judge; agentFor: ComputeAgents },
): Promise<void> {
  const { read, files } = main
  const [computeId = ''] = lab.document.project.computes
  const others = new Map<string, string>()
  const images = { to: agentFor(computeId), sums: read.images, others, revert, judge }
  for (const [from, path] of files.images) await putImage(archive, from, path, images)
  for (const snapshot of snapshots) {
    await using of = await requireZip(labs).open(await archive.read(snapshot.member), archive)
    const content = await readArchive(of, lab.id, ids).catch((error: unknown) => {
      throw error instanceof ApiError ? new ApiError(error.status, `${snapshot.member}: ${error.message}`) : error
    })
    await judge.lab(content.read)
    await put(labs, lab, of, { ...content, computeId, others, judge }, agentFor)
    await keepAsSnapshot(labs, lab, { ...snapshot, settings: content.read.settings }, agentFor)
  }
  await put(labs, lab, archive, { ...main, computeId, others, judge }, agentFor)
}

interface ReadArchive {
  readonly read: ArchivedLab
  readonly files: ReturnType<typeof filesIn>
}

/** The documents of an archive, and where its files go. 400, 409. */
async function readArchive(archive: OpenArchive, projectId: string, ids: Map<string, string>): Promise<ReadArchive> {
  requireDocument(archive)
  const document = await jsonOf(archive, documentName)
  const more = archive.members.has(moreName) ? await jsonOf(archive, moreName) : undefined
  const interfaces = await interfacesIn(archive)
  const read = archivedLab(document, more, projectId, ids, interfaces.texts)
  return { read, files: filesIn(archive, read, interfaces.members) }
}

/** Puts files, nodes, links and drawings of an archive into a new project. */
async function put(
  labs: Labs,
  lab: Lab,
  archive: OpenArchive,
  {
    read,
    files,
    computeId,
    others,
    judge,
  }: ReadArchive & { computeId: string; others: ReadonlyMap<string, string>; judge: Judge },
  agentFor: ComputeAgents,
): Promise<void> {
  for (const [from, path] of files.project)
    await agentFor(computeId).files.write(lab.id, path, await readJudged(archive, from, path, judge), {
      parents: true,
      size: archive.members.get(from) as number,
    })
  const changes = new Changes()
  for (const node of read.nodes) {
    const renamed = imageProperties(node).map((key) => {
      const path = node.properties[key] as string
      return [key, others.get(`${node.node_type} ${path}`) ?? path]
    })
    const properties = { ...node.properties, ...Object.fromEntries(renamed) }
    const isStored = judge === ofOwnLab
    const made = await makeNode(lab, { ...node, compute_id: computeId, properties }, agentFor, { isStored })
    changes.put('node', node.node_id, made)
  }
  for (const link of read.links) changes.put('link', link.link_id, link)
  for (const drawing of read.drawings) changes.put('drawing', drawing.drawing_id, drawing)
  await lab.edit((document) => {
    for (const [key, value] of tasksChanges(document, read.tasks).entries) changes.entries.set(key, value)
    return { changes, ...silent }
  })
  const joined = new Changes()
  for (const link of await joinLinks(labs, lab, read.links, agentFor)) joined.put('link', link.link_id, link)
  await lab.edit(() => ({ changes: joined, ...silent }))
}

const silent = { news: () => [], result: undefined }

interface ArchivedSnapshot {
  /** The name of its archive inside the archive. */
  readonly member: string
  readonly name: string
  /** Seconds since 1970. */
  readonly created_at: number
}

/** The snapshots in an archive, the oldest first. Before GNS3 2.2.58 their names and times (UTC) are in the names of their files. */
async function snapshotsIn(archive: OpenArchive): Promise<ArchivedSnapshot[]> {
  const { members } = archive
  const list: unknown = members.has(snapshotList) ? await jsonOf(archive, snapshotList) : []
  const listed = new Map(Check(SnapshotList, list) ? list.map((it) => [it.filename, it] as const) : [])
  const found: ArchivedSnapshot[] = []
  const names = new Set<string>()
  for (const member of members.keys()) {
    const file = member.slice(snapshotsDirectory.length)
    if (!member.startsWith(snapshotsDirectory) || file.includes('/') || !/\.gns3(project|snapshot)$/.test(file))
      continue
    const [, own, ...date] = /^(.+)_(\d\d)(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)\.gns3project$/.exec(file) ?? []
    const [day, month, year, ...time] = date
    const at = Date.parse(`20${year}-${month}-${day}T${time.join(':')}Z`) / 1000
    const created_at = listed.get(file)?.created_at ?? (Number.isNaN(at) ? Math.floor(Date.now() / 1000) : at)
    const wanted = listed.get(file)?.name ?? own ?? file.replace(/\.[^.]*$/, '')
    const name = freeName(wanted, (key) => names.has(key))
    names.add(nameKey(name))
    found.push({ member, name, created_at })
  }
  if (found.length > maxSnapshots)
    throw badRequest(`The archive has ${found.length} snapshots; the limit is ${maxSnapshots}`)
  return found.sort((a, b) => a.created_at - b.created_at)
}

/** Keeps the content of a new project as a snapshot, and empties the project. */
async function keepAsSnapshot(
  labs: Labs,
  lab: Lab,
  { name, created_at, settings }: ArchivedSnapshot & { settings: Record<string, unknown> },
  agentFor: ComputeAgents,
): Promise<void> {
  const { project, nodes, links, drawings } = lab.document
  const [computeId = ''] = project.computes
  const snapshot_id = crypto.randomUUID()
  const { unfinished: _, ...own } = project
  const record = { snapshot_id, name, created_at, computes: [computeId], lastRunning: {} }
  // The record is saved before the document: when the import fails, or its service ends, both are removed.
  await lab.edit(() => ({ changes: new Changes().put('snapshot', snapshot_id, { ...record, size: 0 }), ...silent }))
  await labs.documents.putSideDocument(snapshot_id, { ...contentOf(lab.document), project: { ...own, ...settings } })
  const { size } = await agentFor(computeId).snapshots.take(lab.id, snapshot_id)
  const changes = new Changes().put('snapshot', snapshot_id, { ...record, size })
  for (const node of nodes.values()) {
    if (isKnownKind(node.node_type) && node.creationError === undefined)
      await agentFor(computeId).nodes.remove(nodeRefOf(lab, node))
    changes.remove('node', node.node_id)
  }
  for (const link of links.keys()) changes.remove('link', link)
  for (const drawing of drawings.keys()) changes.remove('drawing', drawing)
  await lab.edit(() => ({ changes, ...silent }))
}

function requireDocument({ members }: OpenArchive): void {
  if (!members.has(documentName))
    throw badRequest(`The archive has no ${documentName}: it is incomplete, or was not made by Patchbay or GNS3`)
}

/** Where the files of an archive go that were not read: into the project, or to the images of a kind. 400 for names that belong to neither. */
function filesIn(
  { members }: OpenArchive,
  { ids, nodes }: ArchivedLab,
  wereRead: ReadonlySet<string>,
): { project: ReadonlyMap<string, string>; images: Map<string, ArchivedImage> } {
  const project = new Map<string, string>()
  const images = new Map<string, ArchivedImage>()
  const directories = [
    'project-files',
    ...nodes.map(({ node_type, node_id }) => `project-files/${node_type}/${node_id}`),
  ]
  const types = new Map<string, 'file' | 'directory'>(directories.map((path) => [path, 'directory']))
  for (const name of members.keys()) {
    const words = name.split('/')
    const refuse = (why: string) => badRequest(`The archive contains ${quotedPath(name)}, ${why}`)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: names of files have none
    if (words.some((word) => word === '' || word === '.' || word === '..' || /[\u0000-\u001f\\]/.test(word)))
      throw refuse('which is not a valid file name in an archive')
    if (words.some((word) => encoder.encode(word).byteLength > maxNameBytes))
      throw refuse(`a name of more than ${maxNameBytes} bytes`)
    if (words[0] === '.patchbay') throw refuse('a name that is reserved for the service')
    const newName = renamed(name, kindOfWord)
      .replace(
        /^(project-files\/[^/]+\/)([^/]+)/,
        (_, kind: string, id: string) => kind + (ids.get(id.toLowerCase()) ?? id),
      )
      .replace(/^images\/[^/]+/, (directory) => directory.toUpperCase())
    const parts = newName.split('/')
    for (let length = 1; length <= parts.length; length++) {
      const type = length === parts.length ? 'file' : 'directory'
      const at = parts.slice(0, length).join('/')
      const before = types.get(at)
      if (before !== undefined && (before !== type || type === 'file'))
        throw refuse('a name that occurs twice, or is also the name of a directory')
      types.set(at, type)
    }
    if (name === documentName || name === moreName || words[0] === 'snapshots' || wereRead.has(name)) continue
    const image = archivedImage(words)
    if (image !== undefined) images.set(name, image)
    else if (words[0] !== 'images') project.set(name, newName)
  }
  return { project, images }
}

interface ArchivedImage {
  readonly kind: ImageKindName
  readonly path: string
}

function archivedImage([first, directory = '', ...path]: readonly string[]): ArchivedImage | undefined {
  const kind = first === 'images' ? kindOfDirectory(directory) : undefined
  if (kind !== undefined && isImageKind(kind) && path.length > 0) return { kind, path: path.join('/') }
  return undefined
}

/** The images whose digests an archive has, by the names that they have in archives. */
const imagesBeside = ({ images }: ArchivedLab): [string, ArchivedImage][] =>
  Object.keys(images).flatMap((name) => {
    const image = archivedImage(['images', ...name.split('/')])
    return image === undefined ? [] : [[`images/${name}`, image]]
  })

async function jsonOf(archive: OpenArchive, name: string): Promise<unknown> {
  if ((archive.members.get(name) ?? 0) > maxDocumentBytes)
    throw badRequest(`${name}: longer than ${maxDocumentBytes} bytes`)
  const text = await new Response(await archive.read(name)).text()
  try {
    return storedValue(text)
  } catch (cause) {
    throw badRequest(`${name}: not JSON`, { cause })
  }
}

/**
 * Stores an image on a compute that lacks it. An image there with the same digest is used instead, under its name. If another image has
 * the name, the new one gets a name with its digest.
 */
async function putImage(
  archive: OpenArchive,
  from: string,
  { kind, path }: ArchivedImage,
  {
    to,
    sums,
    others,
    revert,
    judge,
  }: {
    to: ReturnType<ComputeAgents>
    sums: Readonly<Record<string, string>>
    others: Map<string, string>
    revert: Revert | undefined
    judge: Judge
  },
): Promise<void> {
  const sum = sums[from.slice('images/'.length)]
  const list = await to.images.list(kind)
  const there = list.find((it) => it.path === path)
  const size = archive.members.get(from)
  if (sum !== undefined && there?.sha256 !== sum) {
    const same = list.find(({ sha256 }) => sha256 === sum)
    if (same !== undefined) return void others.set(`${kind} ${path}`, same.path)
  } else if (there !== undefined) return
  if (size === undefined || revert === undefined || (there !== undefined && there.sha256 === undefined)) return
  const name = there === undefined ? path : path.replace(/(\.[^./]*)?$/, `-${sum?.slice(0, 8)}$1`)
  if (name !== path) others.set(`${kind} ${path}`, name)
  await to.images.write(kind, name, await readJudged(archive, from, from, judge), {
    size,
    digests: sum === undefined ? [] : [{ algorithm: 'sha-256', hex: sum }],
  })
  revert.add(() => to.images.remove(kind, name))
}
