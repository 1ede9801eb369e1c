import type { StoredFile } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import { type ImageKindName, isImageKind } from '../../model/image.ts'
import { isStateless } from '../../model/kinds/node.ts'
import { archiveWord, imageDirectory, imageProperties } from '../../model/lab/archive-words.ts'
import type { LabProject } from '../../model/lab/project.ts'
import type { ProjectFile } from '../../model/project.ts'
import { isUuid } from '../../model/schema/fields.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { LabDocument, NodeRecord, SnapshotRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import type { Labs } from '../service.ts'
import { documentOf, keptOf } from '../snapshots/snapshots.ts'
import { archiveOf, documentName, moreName } from './archive-document.ts'
import type { ArchiveMember, ZipArchives } from './zip-archives.ts'

export interface ExportOptions {
  readonly withImages: boolean
  /** Adds each snapshot as an archive inside the archive, without the saved memory of its machines. */
  readonly withSnapshots: boolean
  readonly resetsAddresses: boolean
  /** Whether the tasks have their checks: not for those who are to solve them. */
  readonly withChecks: boolean
  /** Compression from 1 to 9; 0: none. */
  readonly level: number
  /** Most bytes of its files, before compression; absent: there is no limit. */
  readonly maxBytes?: number
}

/** The bytes that the files of an archive may still have. Files may be compressed to a thousandth, so the size of the archive is not a limit. */
class Room {
  readonly #maxBytes: number
  #left: number

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes
    this.#left = maxBytes
  }

  /** Counts a file. 413, and the file is not read, when there is no room for it. */
  reserve({ content, size }: Pick<StoredFile, 'content' | 'size'>): void {
    this.#left -= size
    if (this.#left >= 0) return
    content.cancel().catch(ignore('it is not read'))
    throw new ApiError(413, `Its files have more than ${this.#maxBytes} bytes`)
  }
}

export const requireZip = ({ zip }: Labs): ZipArchives => {
  if (zip !== undefined) return zip
  throw new ApiError(501, 'This service does not support archives: use a service on Node')
}

/** A lab as an archive. 409 while a node runs. A closed lab is open on its computes meanwhile. */
export async function exportLab(
  labs: Labs,
  lab: Lab,
  options: ExportOptions,
  agentFor: ComputeAgents,
): Promise<ReadableStream<Uint8Array>> {
  const zip = requireZip(labs)
  labs.access.requireNotMoving(lab.id)
  requireStopped(lab, 'exported')
  const { promise, resolve, reject } = withResolvers<ReadableStream<Uint8Array>>()
  // The project stays open on its computes until the client has read the archive, or has given it up.
  labs.parts
    .withOpen(lab, agentFor, async () => {
      const images = await imagesOf([...lab.document.nodes.values()], agentFor)
      const sums = Object.fromEntries([...images].flatMap(([name, { sha256 }]) => (sha256 ? [[name, sha256]] : [])))
      const snapshots = options.withSnapshots ? [...lab.document.snapshots.values()] : []
      const { document, more } = archiveOf(lab.document, { ...options, images: sums })
      // Before the first byte of the archive, so that a compute that is not connected is an error and no archive that breaks off.
      const lists = await filesOn(lab, lab.document.project.computes, agentFor)
      const listsOf = async (snapshot: SnapshotRecord) =>
        [snapshot, await filesOn(lab, snapshot.computes, agentFor, snapshot.snapshot_id)] as const
      const listsOfSnapshots = await mapLimit(snapshots, listsOf)
      const ended = withResolvers<void>()
      const room = new Room(options.maxBytes)
      const members = async function* (): AsyncGenerator<ArchiveMember> {
        try {
          yield jsonMember(documentName, document)
          yield jsonMember(moreName, more)
          yield* filesOf(lab, lab.document, agentFor, { lists, room })
          if (snapshots.length > 0) yield jsonMember(snapshotList, listOf(lab, snapshots))
          for (const [snapshot, lists] of listsOfSnapshots) {
            const content = zip.write(
              snapshotMembers(labs, lab, snapshot, { ...options, lists, room }, agentFor),
              options.level,
            )
            const modified = snapshot.created_at * 1000
            yield { name: `${snapshotsDirectory}${snapshotName(snapshot)}`, size: undefined, modified, content }
          }
          if (!options.withImages) return
          for (const [name, { compute_id, kind, path }] of images) {
            const image = await agentFor(compute_id).images.read(kind, path, {})
            room.reserve(image)
            yield { name: `images/${name}`, ...image }
          }
        } finally {
          ended.resolve()
        }
      }
      resolve(zip.write(members(), options.level))
      await ended.promise
    })
    .catch(reject)
  return promise
}

/** The members of the archive of a snapshot. */
async function* snapshotMembers(
  labs: Labs,
  lab: Lab,
  record: SnapshotRecord,
  options: ExportOptions & { readonly lists: FileLists; readonly room: Room },
  agentFor: ComputeAgents,
): AsyncGenerator<ArchiveMember> {
  const content = documentOf(await keptOf(labs, record))
  const { document, more } = archiveOf(content, { ...options, images: {} })
  yield jsonMember(documentName, document)
  yield jsonMember(moreName, more)
  const { lists, room } = options
  yield* filesOf(lab, content, agentFor, { lists, room, snapshot_id: record.snapshot_id })
}

/** The list of snapshots. Its entries have only the members that GNS3 reads. */
const listOf = (lab: Lab, snapshots: readonly SnapshotRecord[]) =>
  snapshots.map(({ snapshot_id, name, created_at, ...rest }) => ({
    snapshot_id,
    name,
    created_at,
    description: name,
    project_id: lab.id,
    filename: snapshotName({ name, created_at, ...rest }),
  }))

/** The name of the archive of a snapshot before GNS3 2.2.58, which later releases read too: its name and its time (UTC). */
function snapshotName({ name, created_at }: Pick<SnapshotRecord, 'name' | 'created_at'>): string {
  const [year = '', month, day, ...time] = new Date(created_at * 1000).toISOString().match(/\d+/g) ?? []
  return `${fileNameOf(name)}_${day}${month}${year.slice(2)}_${time.slice(0, 3).join('')}${suffix}`
}

function withResolvers<T>() {
  let [resolve, reject]: [(value: T) => void, (reason: unknown) => void] = [() => {}, () => {}]
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** 409 while a node runs, unless its kind always runs. `what`: the refused operation, such as "exported". */
export function requireStopped(lab: Lab, what: string): void {
  for (const record of lab.document.nodes.values())
    if (lab.nodeView(record).status !== 'stopped' && !isStateless(record.node_type))
      throw conflict(`${record.name} is running: the project can be ${what} after its nodes are stopped`, {
        code: 'node-running',
      })
}

function jsonMember(name: string, value: unknown): ArchiveMember {
  const bytes = new TextEncoder().encode(JSON.stringify(value, null, 4))
  return { name, size: bytes.byteLength, modified: Date.now(), content: new Blob([bytes]).stream() }
}

/** Directories with transient files, which no node owns. */
const transient = new Set(['tmp', 'captures', 'snapshots'])
export const isExported = (path: string): boolean => {
  const [first, second = ''] = path.split('/')
  if (first === 'snapshots' || path === documentName || path === moreName) return false
  return (
    !(first === 'project-files' && transient.has(second)) &&
    !/(\.log|_log\.txt|\.pid|\.lck|\/memory\.(started|suspended))$/.test(path)
  )
}

/** Whether a file is in the directory of a deleted node, which stays until the lab is closed. */
export const isOfDeleted = ({ nodes }: LabDocument, path: string): boolean => {
  const [first, , id = ''] = path.split('/')
  return first === 'project-files' && isUuid(id) && !nodes.has(id.toLowerCase())
}

/** The files of a lab, or of a snapshot of it, on all computes, under their names in archives. */
async function* filesOf(
  lab: Lab,
  document: LabDocument,
  agentFor: ComputeAgents,
  { lists, room, snapshot_id }: { lists: FileLists; room: Room; snapshot_id?: string },
): AsyncGenerator<ArchiveMember> {
  const names = new Set<string>()
  for (const [computeId, list] of lists) {
    for (const { path } of list) {
      const name = renamed(path, archiveWord)
      if (!isExported(path) || isOfDeleted(document, path) || names.has(name)) continue
      names.add(name)
      const file = await agentFor(computeId).files.read(lab.id, path, { snapshot: snapshot_id })
      room.reserve(file)
      yield { name, ...file }
    }
  }
}

/** The files of each compute. */
type FileLists = ReadonlyMap<string, readonly ProjectFile[]>

async function filesOn(
  lab: Lab,
  computes: readonly string[],
  agentFor: ComputeAgents,
  snapshotId?: string,
): Promise<FileLists> {
  const listOf = async (id: string) =>
    [id, await agentFor(id).files.list(lab.id, { sums: false, snapshot: snapshotId, complete: true })] as const
  return new Map(await mapLimit([...computes], listOf))
}

/** Replaces the word of the kind in the path of a file. */
export const renamed = (path: string, wordOf: (word: string) => string): string =>
  path.replace(/^project-files\/([^/]+)\//, (_, word: string) => `project-files/${wordOf(word)}/`)

interface FoundImage {
  readonly compute_id: string
  readonly kind: ImageKindName
  readonly path: string
  readonly sha256?: string | undefined
}

/** The images of nodes, where their computes have them, by `{directory}/{name}`. */
export async function imagesOf(
  nodes: readonly NodeRecord[],
  agentFor: ComputeAgents,
): Promise<Map<string, FoundImage>> {
  const lists = new Map<string, ReturnType<ReturnType<ComputeAgents>['images']['list']>>()
  const found = new Map<string, FoundImage>()
  for (const node of nodes) {
    const { node_type: kind, compute_id, properties } = node
    const directory = imageDirectory(kind)
    if (!isImageKind(kind) || directory === undefined) continue
    for (const property of imageProperties(node)) {
      const path = properties[property] as string
      const key = `${compute_id} ${kind}`
      const list = lists.get(key) ?? agentFor(compute_id).images.list(kind)
      lists.set(key, list)
      const image = (await list).find((it) => it.path === path)
      if (image !== undefined) found.set(`${directory}/${path}`, { compute_id, kind, path, sha256: image.sha256 })
    }
  }
  return found
}

const suffix = '.gns3project'
export const snapshotsDirectory = 'snapshots/'
export const snapshotList = `${snapshotsDirectory}snapshots.conf`
const fileNameOf = (name: string): string => name.replaceAll(/[^\w .()-]/g, '_')
export const archiveName = ({ name }: LabProject): string => name + suffix
