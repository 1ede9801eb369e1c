import { randomBytes } from 'node:crypto'
import { lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import type { FileAgent, StoredFile } from '../../../../src/host-agent.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { badRequest, conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import { compareText } from '../../../../src/lib/text/compare-text.ts'
import { quotedPath } from '../../../../src/lib/text/escape.ts'
import type { ProjectFile } from '../../../../src/model/project.ts'
import type { Checksums } from '../storage/checksums.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { markerDirectory, resolveInProject } from '../storage/paths.ts'
import { receive } from '../storage/receive.ts'
import { contentOf, openDirectory, openRegular } from '../storage/stored-file.ts'
import type { OpenProject } from './open-project.ts'
import { noSuchSnapshot, snapshotDirectory } from './project-snapshots.ts'

/** Number of files hashed at a time; more only cause seeks of the disk. */
const maxAtOnce = 8
/** Names of unfinished uploads. */
const upload = /^\..+\.[0-9a-f]{12}\.upload$/

export interface FilesOptions {
  /** An open project; 404. */
  readonly project: (projectId: string) => Promise<OpenProject>
  readonly checksums: Checksums
  readonly minFreeMb: () => number
  /** Timeout of an upload without data, ms. */
  readonly bodyTimeoutMs: number
  /** Has the nodes of a project write what they keep elsewhere into their directories. 409, 507. */
  readonly gather: (project: OpenProject) => Promise<void>
}

/** The files of projects. */
export class ProjectFiles implements FileAgent {
  readonly #options: FilesOptions

  constructor(options: FilesOptions) {
    this.#options = options
  }

  async list(
    projectId: string,
    { sums, snapshot, complete }: Parameters<FileAgent['list']>[1] & object = { sums: true },
  ): Promise<ProjectFile[]> {
    if (complete && snapshot === undefined) await this.#options.gather(await this.#options.project(projectId))
    const root = await this.#rootOf(projectId, snapshot)
    const paths = await regularFiles(root, snapshot === undefined ? root : join(root, 'project-files'))
    const files: ProjectFile[] = []
    const work = async (file: string) => {
      const stats = await lstat(file, { bigint: true }).catch(() => undefined)
      if (stats?.isFile() !== true) return
      const path = relative(root, file).split(sep).join('/')
      const md5sum = sums ? await this.#options.checksums.of(file, stats) : undefined
      if (md5sum !== undefined) files.push({ path, md5sum })
      else if (!sums) files.push({ path, size: Number(stats.size) })
    }
    await mapLimit(paths, work, maxAtOnce)
    return files.sort((a, b) => compareText(a.path, b.path))
  }

  async read(
    projectId: string,
    path: string,
    { snapshot }: { snapshot?: string | undefined } = {},
  ): Promise<StoredFile> {
    const root = await this.#rootOf(projectId, snapshot)
    const file = await withDiskErrors('path', () => resolveInProject(root, path))
    const shown = quotedPath(path)
    const missing = `path: there is no file ${shown}; GET .../files lists the files of the project`
    const handle = await openRegular(file, () => notFound(missing, { code: 'no-such-file' }))
    const { size, mtimeMs } = await handle.stat()
    return { content: contentOf(handle, size), size, modified: mtimeMs }
  }

  async write(
    projectId: string,
    path: string,
    content: ReadableStream<Uint8Array>,
    { parents }: { parents: boolean },
  ): Promise<void> {
    const project = await this.#options.project(projectId)
    await project.write((signal) => this.#write(project.path, path, content, { parents, signal }))
  }

  async #write(
    root: string,
    path: string,
    content: ReadableStream<Uint8Array>,
    { parents, signal }: { parents: boolean; signal: AbortSignal },
  ): Promise<void> {
    const file = await withDiskErrors('path', () => resolveInProject(root, path))
    await requireSpace(root, this.#options.minFreeMb())
    await withDiskErrors('path', async () => {
      const found = await stat(file).catch(() => undefined)
      if (found !== undefined && !found.isFile()) throw conflict('path: this is a directory, not a file')
      if (path.endsWith('/')) throw badRequest('path: expected the name of a file')
      const parent = dirname(file)
      if (parents) await mkdir(parent, { recursive: true, mode: 0o700 })
      else if ((await stat(parent).catch(() => undefined)) === undefined)
        throw notFound('path: the parent directory does not exist')
      await using directory = await openDirectory(parent, () => conflict('path: the directory has just been replaced'))
      const temporary = directory.path(`.${basename(file).slice(0, 40)}.${randomBytes(6).toString('hex')}.upload`)
      try {
        await using handle = await open(temporary, 'wx', 0o600)
        const { minFreeMb, bodyTimeoutMs } = this.#options
        const limits = { directory: root, minFreeMb, bodyTimeoutMs, signal, fate: 'nothing was written' }
        await receive(content, handle, limits)
        signal.throwIfAborted()
        await rename(temporary, directory.path(basename(file)))
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    })
  }

  /** The directory of a project, or of a snapshot of it; 404. */
  async #rootOf(projectId: string, snapshot: string | undefined): Promise<string> {
    const { path } = await this.#options.project(projectId)
    if (snapshot === undefined) return path
    const root = snapshotDirectory(path, snapshot)
    if ((await stat(root).catch(() => undefined))?.isDirectory() === true) return root
    throw noSuchSnapshot(snapshot)
  }
}

/** Every regular file below a directory of a project, without records of the service, uploads and *.ghost files. Follows no links. */
async function regularFiles(root: string, begin: string): Promise<string[]> {
  const found: string[] = []
  const pending = [begin]
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = join(directory, entry.name)
      if (entry.isDirectory()) {
        if (directory !== root || entry.name !== markerDirectory) pending.push(path)
      } else if (entry.isFile() && !entry.name.endsWith('.ghost') && !upload.test(entry.name)) found.push(path)
    }
  }
  return found
}
