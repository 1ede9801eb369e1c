import { constants } from 'node:fs'
import { access, readdir, realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, isAbsolute, join, resolve, sep } from 'node:path'
import { missingImage } from '../../../../src/lib/errors/api-error.ts'
import { compareText } from '../../../../src/lib/text/compare-text.ts'
import type { ImageKindName } from '../../../../src/model/image.ts'
import { containerImageFile, imageCommands } from '../../../../src/model/kinds/image-names.ts'
import { kindOf } from '../../../../src/model/kinds/node.ts'
import { isInside } from '../storage/paths.ts'

/** Depth of the search below an additional directory; below our own directory it is 1. */
const deepest = 16

export interface LibraryOptions {
  /** `{data}/images`. */
  readonly directory: string
  readonly additional: () => readonly string[]
  readonly isLocal: () => boolean
  /** See `ImagesOptions.isImage`. */
  readonly isImage: (kind: ImageKindName, file: string, name: string) => boolean | Promise<boolean>
}

/** An image file. */
export interface FoundImage {
  /** Absolute, links not resolved. */
  readonly file: string
  /** The name for clients: relative to its directory of images, else absolute. */
  readonly name: string
}

/** Finds images by name in the directories of images. */
export class ImageLibrary {
  readonly #options: LibraryOptions

  constructor(options: LibraryOptions) {
    this.#options = options
  }

  /** The directory for uploads and new disks of a kind. */
  ownDirectory(kind: ImageKindName): string {
    return join(this.#options.directory, kind)
  }

  /** Every image of a kind, each directory sorted. A file name in an additional directory is hidden by an earlier one. */
  async all(kind: ImageKindName): Promise<FoundImage[]> {
    const [own = '', ...additional] = this.directories(kind)
    const listed = async (images: readonly FoundImage[]) => {
      const shown: FoundImage[] = []
      // One at a time: a kind may have to open the file, and there may be thousands.
      for (const image of images) if (await this.isImage(kind, image.file)) shown.push(image)
      return shown
    }
    const found = await listed(await this.#below(own, 1))
    const names = new Set(found.map(({ file }) => basename(file)))
    for (const directory of additional) {
      for (const image of await listed(await this.#below(directory, deepest))) {
        const name = basename(image.file)
        if (!names.has(name)) found.push(image)
        names.add(name)
      }
    }
    const reachable = await Promise.all(found.map(({ file }) => this.#mayRead(kind, file)))
    return found.filter((_, index) => reachable[index])
  }

  /** Whether a file is listed as an image of a kind, under its name or another one. */
  isImage(kind: ImageKindName, file: string, name = basename(file)): boolean | Promise<boolean> {
    return this.#options.isImage(kind, file, name)
  }

  /**
   * The image that the settings of a node name. Relative: searched by file name in the directories of images, then in
   * `project`; directories in the name must be those the file is in. Absolute: any file in local mode, else one inside
   * those directories. An image that registries have may be named as they do. 409 with `image` when there is none.
   */
  async lookup(kind: ImageKindName, name: string, project?: string): Promise<FoundImage> {
    const own = kindOf(kind).image?.isOfRegistry === true ? containerImageFile(name) : name
    const missing = (why: string) => missingImage(`image: ${JSON.stringify(name.slice(0, 200))} ${why}`, own)
    if (name.includes('\0') || /^[A-Za-z]:/.test(name)) throw missing('is not a path on this system')
    const find = (name: string) =>
      isAbsolute(name) ? this.#absolute(kind, name) : this.find(kind, name.split('/'), project)
    const found = (await find(name)) ?? (own === name ? undefined : await find(own))
    const commands = own === name ? undefined : imageCommands(name)
    if (found === undefined)
      throw missing(`does not exist${commands ? `: ${commands}` : '; upload it, then try again'}`)
    if (!(await this.#mayRead(kind, found.file, project)))
      throw missing('is outside the directories of images, which only local mode allows')
    await access(found.file, constants.R_OK).catch(() => {
      throw missing('cannot be read by the service')
    })
    return found
  }

  /** The first image whose path ends with the components, whether or not links lead it out of the directories. */
  async find(kind: ImageKindName, parts: readonly string[], project?: string): Promise<FoundImage | undefined> {
    if (parts.some((part) => part === '' || part.startsWith('.'))) return undefined
    const [own = '', ...additional] = this.directories(kind)
    const ending = parts.join('/')
    const all = [own, ...additional, ...(project === undefined ? [] : [project])]
    for (const [index, directory] of all.entries()) {
      const file = join(directory, ...parts)
      if (await isFile(file)) return { file, name: directory === project ? file : ending }
      const below = await this.#below(directory, index === 0 ? 1 : deepest)
      const found = below.find(({ name }) => name.endsWith(`/${ending}`))
      if (found !== undefined) return directory === project ? { ...found, name: found.file } : found
    }
    return undefined
  }

  /** Whether a file, links resolved, is inside the directories of images. */
  async isInside(kind: ImageKindName, file: string, project?: string): Promise<boolean> {
    const real = await realpath(file).catch(() => undefined)
    const all = [...this.directories(kind), ...(project === undefined ? [] : [project])]
    const bases = await Promise.all(all.map((directory) => realpath(directory).catch(() => undefined)))
    return real !== undefined && bases.some((base) => base !== undefined && isInside(base, real))
  }

  async #mayRead(kind: ImageKindName, file: string, project?: string): Promise<boolean> {
    return this.#options.isLocal() || this.isInside(kind, file, project)
  }

  async #absolute(kind: ImageKindName, file: string): Promise<FoundImage | undefined> {
    const path = resolve(file)
    if (!(await isFile(path))) return undefined
    const directory = this.directories(kind).find((it) => isInside(it, path))
    return { file: path, name: directory === undefined ? path : slashed(path.slice(directory.length + 1)) }
  }

  /** The directories of images of a kind, our own first. */
  directories(kind: ImageKindName): string[] {
    const additional = this.#options.additional().map((it) => resolve(it.replace(/^~(?=\/|$)/, homedir())))
    return [this.ownDirectory(kind), ...additional]
  }

  /** Regular files down to a depth, and links to files. Without hidden files; links to directories are not followed. Sorted, shallow first. */
  async #below(root: string, depth: number, prefix = ''): Promise<FoundImage[]> {
    const entries = await readdir(join(root, prefix), { withFileTypes: true }).catch(() => [])
    const files: FoundImage[] = []
    const deeper: FoundImage[] = []
    for (const entry of entries.sort((a, b) => compareText(a.name, b.name))) {
      if (entry.name.startsWith('.')) continue
      const name = prefix === '' ? entry.name : `${prefix}/${entry.name}`
      const file = join(root, name)
      if (entry.isDirectory() && depth > 0) deeper.push(...(await this.#below(root, depth - 1, name)))
      else if (entry.isFile() || (entry.isSymbolicLink() && (await isFile(file)))) files.push({ file, name })
    }
    return [...files, ...deeper]
  }
}

const slashed = (path: string): string => path.split(sep).join('/')

const isFile = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined))?.isFile() === true
