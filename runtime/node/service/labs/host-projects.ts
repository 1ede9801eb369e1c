import { lstat, readdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { isExported } from '../../../../src/labs/archives/archive.ts'
import { documentName } from '../../../../src/labs/archives/archive-document.ts'
import type { HostProjects, OpenArchive } from '../../../../src/labs/archives/zip-archives.ts'
import { badRequest, conflict, forbidden, notFound, tooLarge } from '../../../../src/lib/errors/api-error.ts'
import { quotedPath } from '../../../../src/lib/text/escape.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { isInside, realish, requireAbsolute, requireNoNul } from '../../engine/storage/paths.ts'
import { contentOf, openRegular } from '../../engine/storage/stored-file.ts'

/** Most files of a project, as of an archive. */
const maxFiles = 100_000
/** What belongs to a project beside its document. Its directory may be a home directory, and have anything else. */
const ofProject = ['project-files', 'snapshots', 'README.txt']

export interface HostProjectFilesOptions {
  /** The directory of the projects of this service. */
  readonly directory: string
  /** Whether the current request is in local mode. */
  readonly isLocal: () => boolean
}

/** Projects of GNS3 on the disk of this host. */
export class HostProjectFiles implements HostProjects {
  readonly #options: HostProjectFilesOptions

  constructor(options: HostProjectFilesOptions) {
    this.#options = options
  }

  open(path: string): Promise<OpenArchive> {
    return withDiskErrors('path', async () => ProjectDirectory.read(await this.#checked(path)))
  }

  /** The real path of the document. 400, 403. */
  async #checked(path: string): Promise<string> {
    requireNoNul(path)
    requireAbsolute(path)
    if (!/\.gns3$/i.test(path)) throw badRequest(`path: expected a GNS3 project (*.gns3), got ${quotedPath(path)}`)
    const { directory, isLocal } = this.#options
    const file = await realish(resolve(path))
    if (!isLocal() && !isInside(await realish(directory), file))
      throw forbidden(`path: outside local mode only a project inside ${directory} can be loaded`)
    return file
  }
}

/** The directory of a project in the form of an archive. Links and devices in it are left out. */
class ProjectDirectory implements OpenArchive {
  readonly members = new Map<string, number>()
  readonly #files = new Map<string, string>()

  /** 404 without a document, 413 for more than `maxFiles` files. */
  static async read(document: string): Promise<ProjectDirectory> {
    const facts = await stat(document).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
      return undefined
    })
    if (facts?.isFile() !== true) throw notFound(`path: there is no file ${quotedPath(document)}`)
    const project = new ProjectDirectory()
    project.#add(documentName, document, facts.size)
    const directory = dirname(document)
    const there = new Set(await readdir(directory))
    for (const name of ofProject) if (there.has(name)) await project.#addAll(name, join(directory, name))
    return project
  }

  async #addAll(name: string, file: string): Promise<void> {
    const facts = await lstat(file)
    if (facts.isDirectory())
      for (const child of (await readdir(file)).sort()) await this.#addAll(`${name}/${child}`, join(file, child))
    else if (facts.isFile() && (name.startsWith('snapshots/') || isExported(name))) this.#add(name, file, facts.size)
  }

  #add(name: string, file: string, size: number): void {
    if (this.members.size === maxFiles) throw tooLarge(`path: the project has more than ${maxFiles} files`)
    this.members.set(name, size)
    this.#files.set(name, file)
  }

  async read(name: string): Promise<ReadableStream<Uint8Array>> {
    const gone = () => conflict(`path: the file ${quotedPath(name)} of the project no longer exists`)
    const file = this.#files.get(name)
    if (file === undefined) throw gone()
    return contentOf(await openRegular(file, gone), this.members.get(name) ?? 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
