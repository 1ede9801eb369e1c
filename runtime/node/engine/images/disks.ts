import { mkdir, readdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { badRequest, conflict, forbidden, missingImage } from '../../../../src/lib/errors/api-error.ts'
import { Revert } from '../../../../src/lib/revert.ts'
import { compareText } from '../../../../src/lib/text/compare-text.ts'
import { quotedPath } from '../../../../src/lib/text/escape.ts'
import type { DiskCreate, DiskExtend } from '../../../../src/model/image.ts'
import { give, letRead, takeBack } from '../../os/sandbox/box.ts'
import type { Confinement, Sandbox } from '../../os/sandbox/sandbox.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { syncDirectory } from '../storage/durable-file.ts'
import { moveToFree } from '../storage/move-file.ts'
import { isInside, realish } from '../storage/paths.ts'
import { DirectTool } from './direct-tool.ts'
import { requireChain } from './disk-chain.ts'
import { type DiskTools, runDiskTool, type Wrap } from './disk-tools.ts'
import { workshopBeside } from './names.ts'
import { factsIn } from './qemu-img.ts'

/** Timeout for reading the header of an image, ms: only a malicious image takes longer. */
const infoMs = 30_000

export interface DisksOptions {
  readonly tools: DiskTools
  readonly minFreeMb: () => number
  readonly isLocal: () => boolean
  /** Confines the tool outside local mode. */
  readonly sandbox?: Sandbox | undefined
  /** Clients cannot write to this directory by a path. */
  readonly dataDirectory: string
}

/** Makes and extends disk images with the tool of the host. */
export class Disks {
  readonly #options: DisksOptions
  readonly #closing = new AbortController()

  constructor(options: DisksOptions) {
    this.#options = options
  }

  /** Creates a disk at a free path; the files appear when they are complete. */
  async create(file: string, input: DiskCreate): Promise<void> {
    const tool = await this.#options.tools.choose(input.qemu_img)
    const directory = dirname(file)
    await requireSpace(directory, this.#options.minFreeMb(), allocatedBytes(input))
    await withDiskErrors('path', async () => {
      await refuseExisting(file)
      // A directory, not a temporary name: the descriptor of a disk in several files contains their names.
      const workshop = workshopBeside(file)
      await mkdir(workshop, { mode: 0o700 })
      try {
        const made = join(workshop, basename(file))
        const options = optionsOf(input).flatMap(([name, value]) => ['-o', `${name}=${value}`])
        const args = ['create', '-q', '-f', input.format, ...options, made, `${input.size}M`]
        const confinement = await this.#options.sandbox?.confinement()
        await give(confinement?.user, workshop)
        const wrap = inCell(confinement, workshop)
        await runDiskTool(tool, args, { signal: this.#closing.signal, hidden: workshop, wrap })
        await takeBack(confinement?.user, workshop)
        await publish(workshop, file)
      } finally {
        await rm(workshop, { recursive: true, force: true })
      }
      await syncDirectory(directory)
    })
  }

  /** Extends a disk in place. */
  async extend(file: string, input: DiskExtend): Promise<void> {
    const tool = await this.#options.tools.choose(input.qemu_img)
    const directory = dirname(file)
    await requireSpace(directory, this.#options.minFreeMb())
    const confinement = await this.#options.sandbox?.confinement()
    await letRead(confinement?.user, file, [], true)
    const wrap = inCell(confinement, file)
    const info = await runDiskTool(tool, ['info', '--output=json', file], {
      timeoutMs: infoMs,
      hidden: directory,
      wrap,
    })
    const facts = factsIn(info, file)
    if (facts === undefined) throw conflict('path: the tool does not know the format of this image')
    // An uploaded image may name any file or address of the host, as its backing file or for its data.
    const refersToOthers = facts.backing !== undefined || facts.references.length > 0
    if (refersToOthers && !this.#options.isLocal())
      throw conflict('path: the image is based on another image, which only local mode allows')
    await requireChain(new DirectTool(tool, this.#closing.signal), file, facts)
    // The format is named: a raw image that looks like another format must not become one.
    const args = ['resize', '-q', '-f', facts.format, file, `+${input.extend}M`]
    await runDiskTool(tool, args, { signal: this.#closing.signal, hidden: directory, wrap })
  }

  /** The file an absolute path means, in local mode; 403 elsewhere. */
  async checkedPath(path: string): Promise<string> {
    if (!this.#options.isLocal()) throw forbidden('path: absolute paths are allowed in local mode only')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    if (/[\u0000-\u001f\u007f"]/.test(path))
      throw badRequest('path: it contains a character that is not allowed in image names')
    const file = resolve(path)
    const real = await withDiskErrors('path', () => realish(file))
    const data = await realish(this.#options.dataDirectory)
    if (isInside(data, real) && !isInside(join(data, 'images'), real))
      throw forbidden('path: this directory belongs to the service')
    if (['/proc', '/sys', '/dev'].some((directory) => isInside(directory, real)))
      throw forbidden('path: this is not a place for disks')
    return file
  }

  /** Ends the running tools and removes their partial files. */
  close(): void {
    this.#closing.abort()
  }
}

/** The tool sees only the file, or its working directory. */
const inCell = (confinement: Confinement | undefined, path: string): Wrap | undefined =>
  confinement === undefined
    ? undefined
    : (command, args) => confinement.wrap({ cwd: '/', network: 'none', writable: [path] }, command, args)

/** 409 with `image` unless there is a regular file; its real path. */
export async function existing(file: string, name: string): Promise<string> {
  const stats = await stat(file).catch(() => undefined)
  if (stats?.isFile() === true) return realpath(file)
  throw missingImage(`path: there is no image ${JSON.stringify(name.slice(0, 200))}`, name)
}

const common = new Set(['qemu_img', 'path', 'format', 'size'])
/** The options that were given, in alphabetical order. */
const optionsOf = (input: DiskCreate): [string, string | number][] =>
  Object.entries(input as Record<string, string | number | null | undefined>)
    .filter((entry): entry is [string, string | number] => !common.has(entry[0]) && entry[1] != null)
    .sort(([a], [b]) => compareText(a, b))

/** Bytes that the creation writes; a disk grows to its full size in use. */
function allocatedBytes(input: DiskCreate): number {
  const options = new Map(optionsOf(input))
  const bytes = input.size * 2 ** 20
  const isWhole =
    ['falloc', 'full'].includes(String(options.get('preallocation'))) ||
    options.get('static') === 'on' ||
    options.get('subformat') === 'fixed'
  if (isWhole) return bytes
  // A table entry and a reference count for each cluster, and some more.
  if (options.get('preallocation') === 'metadata') return (bytes / Number(options.get('cluster_size') ?? 65536)) * 24
  return 0
}

async function refuseExisting(file: string): Promise<void> {
  if ((await stat(file).catch(() => undefined)) === undefined) return
  throw conflict(`path: the file ${quotedPath(basename(file))} already exists`)
}

/** Moves the new files to their place, the named file last, as it stands for the disk. Never replaces a file. */
async function publish(workshop: string, file: string): Promise<void> {
  const directory = dirname(file)
  const others = (await readdir(workshop)).filter((name) => name !== basename(file))
  await using revert = new Revert(ignore('the client gets the first error'))
  for (const name of [...others, basename(file)]) {
    await moveToFree(join(workshop, name), join(directory, name))
    revert.add(() => rm(join(directory, name), { force: true }))
  }
  revert.commit()
}
