import { lstat, mkdir, realpath, rm } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import type { ImageAgent, StoredImage, UploadOptions, UploadProgress, WantedRange } from '../../../../src/host-agent.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { ApiError, badRequest, conflict, forbidden, missingImage } from '../../../../src/lib/errors/api-error.ts'
import { noSuchImage, quotedImage } from '../../../../src/lib/errors/image-errors.ts'
import {
  byProject,
  type DiskCreate,
  type DiskExtend,
  type Image,
  type ImageKindName,
  type ImageUse,
  imageKinds,
} from '../../../../src/model/image.ts'
import { kindOf } from '../../../../src/model/kinds/node.ts'
import type { FoundProgram } from '../../../../src/model/schema/program.ts'
import type { Sandbox } from '../../os/sandbox/sandbox.ts'
import type { Checksums } from '../storage/checksums.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { makeDirectory, removeTemporaries, syncDirectory } from '../storage/durable-file.ts'
import { moveToFree } from '../storage/move-file.ts'
import { isInside, realish } from '../storage/paths.ts'
import type { ServiceRecords } from '../storage/service-records.ts'
import { contentOf, openRegular } from '../storage/stored-file.ts'
import { DiskTools } from './disk-tools.ts'
import { Disks, existing } from './disks.ts'
import { Executables, isExecutable } from './executables.ts'
import { type FoundImage, ImageLibrary } from './library.ts'
import { checkedName, removeLeftovers } from './names.ts'
import { ImageSums, type Sums } from './sums.ts'
import { type UploadAdmission, Uploads } from './uploads.ts'
import { type ImageUser, nodesByImage, realFile, usersOf } from './users.ts'
import { virtualSizeOf } from './virtual-size.ts'

export interface ImagesOptions {
  readonly records: ServiceRecords
  readonly additional: () => readonly string[]
  /** Whether the current request is in local mode. */
  readonly isLocal: () => boolean
  /** Whether a file is listed as an image of a kind. `name`: its name, or another one that it may get. */
  readonly isImage: (kind: ImageKindName, file: string, name: string) => boolean | Promise<boolean>
  readonly checksums: Checksums
  readonly minFreeMb: () => number
  /** Largest upload, GB. */
  readonly maxGb: () => number
  /** Timeout of an upload without data, ms. */
  readonly bodyTimeoutMs: number
  readonly tools?: DiskTools
  /** Confines tools that read images. */
  readonly sandbox?: Sandbox
  /** The setting executables; without it the list is empty. */
  readonly listedExecutables?: () => readonly string[]
  /** The nodes of open projects. */
  readonly nodes?: () => Iterable<ImageUser>
  /** Whether the caller of the current request may bring programs that this host runs; default: no. */
  readonly mayExecute?: () => boolean
}

/** The images of this host. */
export class Images implements ImageAgent {
  /** Finds images by name, for the kinds of node that start from images. */
  readonly library: ImageLibrary
  /** The images that may run as programs. */
  readonly executables: Executables
  readonly #options: ImagesOptions
  readonly #directory: string
  /** A name that is checked stays as it was until its change: uploads, renamings and deletions of names wait for each other. */
  readonly #changes = new SerialQueue()
  readonly #sums: ImageSums
  readonly #uploads: Uploads
  readonly #tools: DiskTools
  readonly #disks: Disks

  constructor(options: ImagesOptions) {
    const { records, additional, isLocal, isImage, checksums, minFreeMb, maxGb, bodyTimeoutMs } = options
    this.#options = options
    const dataDirectory = records.data
    this.#directory = join(dataDirectory, 'images')
    this.library = new ImageLibrary({ directory: this.#directory, additional, isLocal, isImage })
    this.#sums = new ImageSums(records, checksums)
    const summed = (file: string, sums: Sums) => this.#sums.remember(file, sums)
    this.#uploads = new Uploads({ checksums, minFreeMb, maxGb, bodyTimeoutMs, changes: this.#changes, summed })
    this.executables = new Executables({
      records,
      directory: join(dataDirectory, 'run', 'executables'),
      listed: options.listedExecutables ?? (() => []),
      mayExecute: options.mayExecute ?? (() => false),
      isLocal,
      checksums,
      minFreeMb,
    })
    this.#tools = options.tools ?? new DiskTools()
    this.#disks = new Disks({ tools: this.#tools, minFreeMb, isLocal, dataDirectory, sandbox: options.sandbox })
  }

  /** Creates the directories, and removes the leftovers of interrupted uploads and tools. */
  async open(): Promise<void> {
    await makeDirectory(this.#directory)
    await removeTemporaries(this.#directory)
    await this.executables.open()
    const directories = imageKinds.map((kind) => this.library.ownDirectory(kind))
    await Promise.all(directories.map((directory) => makeDirectory(directory).then(() => removeLeftovers(directory))))
  }

  async close(): Promise<void> {
    this.#disks.close()
    await this.executables.close()
    await this.#sums.close()
  }

  /** MD5 of an image file, from the cache unless the file has changed; undefined when it cannot be read. */
  async md5Of(file: string): Promise<string | undefined> {
    return (await this.#sums.of(file))?.md5sum
  }

  async list(kind: ImageKindName): Promise<Image[]> {
    const images = await this.#sums.ofAll(await this.library.all(kind))
    const areDisks = kindOf(kind).image?.isDisk === true
    // A few at a time: there may be thousands, and each is opened.
    return mapLimit(images, async ({ file, name, md5sum, sha256, size }) => {
      const virtual_size = areDisks ? await virtualSizeOf(file) : undefined
      return {
        filename: basename(file),
        path: name,
        md5sum,
        sha256,
        filesize: size,
        ...(virtual_size !== undefined && { virtual_size }),
      }
    })
  }

  async uses(kind: ImageKindName): Promise<ImageUse[]> {
    const { library } = this
    const users = await nodesByImage({ kind, library, nodes: this.#options.nodes?.() ?? [] })
    const use = async ({ file, name }: FoundImage) => {
      const nodes = users.get(await realFile(file)) ?? []
      return {
        path: name,
        used_by: byProject(nodes.map((node) => ({ project_id: node.project_id, nodes: [node.name] }))),
      }
    }
    return Promise.all((await library.all(kind)).map(use))
  }

  async read(
    kind: ImageKindName,
    name: string,
    { range, onlyIf }: { range?: WantedRange; onlyIf?: string },
  ): Promise<StoredImage> {
    const missing = () =>
      missingImage(`image: there is no ${JSON.stringify(name.slice(0, 200))}; GET .../images lists the images`, name)
    const found = await this.library.find(kind, checkedName(name, Number.POSITIVE_INFINITY))
    if (found === undefined) throw missing()
    // In every mode: nodes may use a link to a file outside, clients may not download that file.
    if (!(await this.library.isInside(kind, found.file)))
      throw forbidden(`image: ${JSON.stringify(name.slice(0, 200))} is a link that leaves the directories of images`)
    const file = await realpath(found.file).catch(() => {
      throw missing()
    })
    const handle = await openRegular(file, missing)
    const stats = await handle.stat({ bigint: true })
    const size = Number(stats.size)
    const modified = Number(stats.mtimeNs / 1_000_000n)
    const etag = `"${stats.ino.toString(36)}-${size.toString(36)}-${stats.mtimeNs.toString(36)}"`
    const applies = onlyIf === undefined || onlyIf === etag || Date.parse(onlyIf) === Math.floor(modified / 1000) * 1000
    if (range === undefined || !applies) return { content: contentOf(handle, size), size, modified, etag }
    const part = satisfied(range, size)
    if (part !== undefined) {
      const content = contentOf(handle, part.last - part.first + 1, part.first)
      return { content, size, modified, etag, part }
    }
    await handle.close()
    const headers = { 'Content-Range': `bytes */${size}` }
    throw new ApiError(416, `Range: the image has only ${size} bytes, so the requested range is outside it`, {
      headers,
    })
  }

  async write(
    kind: ImageKindName,
    name: string,
    content: ReadableStream<Uint8Array>,
    options: UploadOptions,
  ): Promise<UploadProgress> {
    const file = await this.#pathFor(kind, name)
    if (!isExecutable(kind)) return this.#uploads.write(file, content, options)
    const { executables } = this
    executables.requireUpload(name, options.digests.find(({ algorithm }) => algorithm === 'sha-256')?.hex)
    const admission: UploadAdmission = {
      group: executables.uploadGroup,
      admit: (complete) => executables.admitUpload(complete, name),
    }
    return this.#uploads.write(file, content, options, admission)
  }

  async remove(kind: ImageKindName, name: string): Promise<void> {
    if (isExecutable(kind)) this.executables.requireChange(name, 'delete')
    await this.#change(kind, name, 'deleted', async (file) => {
      await this.#requireUnused(kind, name, file)
      await rm(file)
      await syncDirectory(dirname(file))
    })
  }

  async rename(kind: ImageKindName, name: string, to: string): Promise<void> {
    if (isExecutable(kind)) this.executables.requireChange(name, 'rename')
    const directory = (await this.#ownName(kind, name, 'renamed')).slice(0, -1)
    const wanted = checkedName(to)
    const beside = [...directory, wanted.at(-1)].join('/')
    // In another directory a link, or a disk on a base, would no longer find its file.
    if (to !== beside)
      throw badRequest(`path: an image stays in its directory: expected ${quotedImage(beside)}, got ${quotedImage(to)}`)
    await this.#change(kind, name, 'renamed', async (file) => {
      const target = join(dirname(file), basename(to))
      if (target === file) return
      await this.#requireUnused(kind, name, file)
      const { library } = this
      if ((await library.isImage(kind, file)) && !(await library.isImage(kind, file, basename(to))))
        throw badRequest(
          `path: with the name ${quotedImage(to)} the file would not be an image of ${kind} nodes; keep its extension`,
        )
      await this.#requireFree(kind, to, target)
      await moveToFree(file, target).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
        throw conflict(`path: a file or directory ${quotedImage(to)} already exists; choose another name`, {
          code: 'name-taken',
        })
      })
      await syncDirectory(dirname(file))
      await this.#sums.moved(file, target)
    })
  }

  /** Runs a change of a file in our own directory of images. 404 when there is none. */
  async #change(
    kind: ImageKindName,
    name: string,
    verb: 'deleted' | 'renamed',
    change: (file: string) => Promise<void>,
  ): Promise<void> {
    const own = this.library.ownDirectory(kind)
    const file = join(own, ...(await this.#ownName(kind, name, verb)))
    return this.#changes.run(() =>
      withDiskErrors('path', async () => {
        if (!isInside(await realpath(own), await realish(dirname(file))))
          throw forbidden('path: the directory is a link that leaves the images')
        const stats = await lstat(file).catch(() => undefined)
        if (stats === undefined || stats.isDirectory()) throw await this.#notOurs(kind, name, verb)
        await change(file)
      }),
    )
  }

  /** 409 with names while a node of an open project, or another image, needs the image. */
  async #requireUnused(kind: ImageKindName, name: string, file: string): Promise<void> {
    const users = await usersOf({ kind, file, library: this.library, nodes: this.#options.nodes?.() ?? [] })
    if (users.length > 0) throw conflict(`image: ${quotedImage(name)} is needed by ${someOf(users)}`)
  }

  /** 409 when nodes find another image by this name, or by the end of it, or when an upload would replace the file. */
  async #requireFree(kind: ImageKindName, name: string, file: string): Promise<void> {
    const parts = checkedName(name)
    for (const end of [parts, parts.slice(-1)]) {
      const found = await this.library.find(kind, end)
      // By its exact name an image is found before those in directories.
      const isExact = found?.file === join(this.library.ownDirectory(kind), ...end)
      if (found !== undefined && (end === parts || !isExact)) throw taken(name, found.name)
    }
    for (const node of this.#options.nodes?.() ?? []) {
      const named = node.kind === kind ? node.images.find((it) => `/${name}`.endsWith(`/${it}`)) : undefined
      if (named === undefined) continue
      // An image is looked for among the files of the project last.
      const found = await this.library.lookup(kind, named, node.projectPath).catch(() => undefined)
      if (found !== undefined)
        throw conflict(
          `path: the node ${node.name} has an image ${quotedImage(named)} among the files of its project; choose another name`,
        )
    }
    if (await this.#uploads.isBegun(join(await realpath(dirname(file)), basename(file))))
      throw conflict(
        `path: an unfinished upload of ${quotedImage(name)} would replace the image; finish it, or choose another name`,
      )
  }

  /** The components of a name in our own directory. 403 for an image that is deeper in an additional directory. */
  async #ownName(kind: ImageKindName, name: string, verb: 'deleted' | 'renamed'): Promise<string[]> {
    const parts = checkedName(name, Number.POSITIVE_INFINITY)
    const found = parts.length > 2 ? await this.library.find(kind, parts) : undefined
    if (found !== undefined && !isInside(this.library.ownDirectory(kind), found.file)) throw elsewhere(name, verb)
    return checkedName(name)
  }

  /** The error for changing an image outside our own directory. */
  async #notOurs(kind: ImageKindName, name: string, verb: 'deleted' | 'renamed'): Promise<Error> {
    if ((await this.library.find(kind, checkedName(name))) === undefined) return noSuchImage(name)
    return elsewhere(name, verb)
  }

  async progress(kind: ImageKindName, name: string, total: number): Promise<UploadProgress> {
    const group = isExecutable(kind) ? this.executables.uploadGroup : ''
    return this.#uploads.progress(join(this.library.ownDirectory(kind), ...checkedName(name)), total, group)
  }

  diskTools(): Promise<FoundProgram[]> {
    return this.#tools.list()
  }

  async createDisk(kind: ImageKindName, input: DiskCreate): Promise<void> {
    const { path } = input
    const file = isAbsolute(path) ? await this.#disks.checkedPath(path) : await this.#pathFor(kind, path)
    await this.#disks.create(file, input)
  }

  async extendDisk(kind: ImageKindName, input: DiskExtend): Promise<void> {
    const { path } = input
    const named = isAbsolute(path)
      ? await this.#disks.checkedPath(path)
      : join(this.library.ownDirectory(kind), ...checkedName(path))
    const file = await existing(named, path)
    // A name means an image of ours; where a link leads is not ours to write to.
    const base = await realpath(this.library.ownDirectory(kind))
    if (!isAbsolute(path) && !isInside(base, file)) throw forbidden('path: the image is a link that leaves the images')
    await this.#disks.extend(file, input)
  }

  /** The path for an image; creates its directory. 403 when a link leads out of our own directory. */
  async #pathFor(kind: ImageKindName, name: string): Promise<string> {
    const own = this.library.ownDirectory(kind)
    const file = join(own, ...checkedName(name))
    return withDiskErrors('path', async () => {
      await makeDirectory(own)
      const directory = await realish(dirname(file))
      if (!isInside(await realpath(own), directory))
        throw forbidden('path: the directory is a link that leaves the images')
      await requireSpace(own, this.#options.minFreeMb())
      await mkdir(directory, { recursive: true, mode: 0o700 })
      return join(directory, basename(file))
    })
  }
}

const elsewhere = (name: string, verb: 'deleted' | 'renamed'): ApiError =>
  forbidden(
    `image: ${quotedImage(name)} is not in the directory of uploads under this name; images elsewhere are ${verb} there`,
  )

/** `other`: the image that nodes find by the name. */
function taken(name: string, other: string): ApiError {
  const where = other === name ? '' : `, ${quotedImage(other)}`
  return conflict(`path: an image ${quotedImage(name)} already exists${where}; choose another name`, {
    code: 'name-taken',
  })
}

/** The first few of a list. */
function someOf(names: readonly string[]): string {
  const most = 5
  const more = names.length - most
  return names.slice(0, most).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** The bytes of a file in a range; undefined when the range is outside the file. */
function satisfied(range: WantedRange, size: number): { first: number; last: number } | undefined {
  if ('suffix' in range)
    return range.suffix === 0 || size === 0 ? undefined : { first: Math.max(0, size - range.suffix), last: size - 1 }
  if (range.first >= size) return undefined
  return { first: range.first, last: Math.min(range.last ?? size - 1, size - 1) }
}
