import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { SerialQueue } from '../../../src/async/serial-queue.ts'
import { conflict, forbidden } from '../../../src/errors/api-error.ts'
import { kindOf } from '../../../src/kinds/node.ts'
import type { ImageKindName } from '../../../src/model/image.ts'
import type { Checksums } from '../storage/checksums.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { makeDirectory } from '../storage/durable-file.ts'
import type { RecordFormat, ServiceRecords } from '../storage/service-records.ts'

/** Images that are programs of this host; those of other kinds are read by an emulator. */
export const isExecutable = (kind: ImageKindName): boolean => kindOf(kind).image?.isProgram === true

const maxRecorded = 10_000
const setting = 'the setting executables'

export interface ExecutablesOptions {
  readonly records: ServiceRecords
  /** Where the checked copies are that are run; it is emptied when the service starts. */
  readonly directory: string
  /** The setting: SHA-256 digests, in hexadecimal digits. */
  readonly listed: () => readonly string[]
  readonly isLocal: () => boolean
  /** Whether the caller of the request under way may bring programs. */
  readonly mayExecute: () => boolean
  readonly checksums: Checksums
  readonly minFreeMb: () => number
}

interface Brought {
  /** As the image was called when it was uploaded. */
  readonly name: string
  readonly at: string
}

/**
 * Which programs may be run outside local mode: those that an administrator uploaded, and those of the setting. What is run is a
 * copy that nobody else can write to, and of which the digest was made: a file that is replaced or written to after the check
 * changes nothing.
 */
export class Executables {
  readonly #options: ExecutablesOptions
  readonly #copies = new Map<string, { readonly stamp: string; readonly copy: Promise<string> }>()
  #brought: Promise<Map<string, Brought>> | undefined
  readonly #saves = new SerialQueue()

  constructor(options: ExecutablesOptions) {
    this.#options = options
  }

  /** Removes the copies of an earlier service; what runs of them goes on. */
  async open(): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true })
  }

  /**
   * Whose parts of an upload are put together: what a caller began who may not bring programs is not completed by an
   * administrator, who would not know what is in it.
   */
  get uploadGroup(): string {
    return this.#options.mayExecute() ? 'administrators' : ''
  }

  /** 403 before anything of an upload is read, when no digest that it could have would be let in. */
  requireUpload(name: string, sha256: string | undefined): void {
    const { isLocal, mayExecute } = this.#options
    if (isLocal() || mayExecute()) return
    const isHopeless = sha256 === undefined ? this.#options.listed().length === 0 : !this.#isListed(sha256)
    if (isHopeless) throw refused(name, sha256)
  }

  /** 403 when the caller may not delete programs. */
  requireRemoval(name: string): void {
    const { isLocal, mayExecute } = this.#options
    if (isLocal() || mayExecute()) return
    throw forbidden(
      `${name}: it is a program that this host runs, so outside local mode only an administrator deletes it`,
    )
  }

  /** Looks at an upload that is complete, and records it when an administrator brought it; 403. */
  async admitUpload(file: string, name: string): Promise<void> {
    const { mayExecute, isLocal, checksums } = this.#options
    if (isLocal() && !mayExecute()) return
    const sha256 = await checksums.hash(file, 'sha256')
    if (sha256 === undefined) throw conflict(`${name} cannot be read`)
    if (mayExecute()) return this.#record(sha256, name)
    if (!this.#isListed(sha256)) throw refused(name, sha256)
  }

  /** The path at which a program is to be run: that of a checked copy outside local mode; 409 when it may not be run. */
  async admit(file: string): Promise<string> {
    if (this.#options.isLocal()) return file
    const name = basename(file)
    const stats = await stat(file, { bigint: true }).catch(() => undefined)
    if (stats === undefined) throw conflict(`The image ${name} is not there`)
    if (!stats.isFile()) throw conflict(`The image ${name} is not a file`)
    const { dev, ino, size, mtimeNs, ctimeNs } = stats
    const stamp = `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
    let known = this.#copies.get(file)
    if (known?.stamp !== stamp) {
      known = { stamp, copy: this.#copy(file, name, Number(size), (stats.mode & 0o111n) !== 0n) }
      this.#copies.set(file, known)
      if (this.#copies.size > maxRecorded) this.#copies.delete(this.#copies.keys().next().value ?? '')
    }
    let copy: string
    try {
      copy = await known.copy
    } catch (error) {
      if (this.#copies.get(file) === known) this.#copies.delete(file)
      throw error
    }
    // The list may have changed since the copy was made.
    await this.#requireAdmitted(name, basename(join(copy, '..')))
    return copy
  }

  async close(): Promise<void> {
    await this.#saves.idle()
  }

  /** Copies first: the digest is that of what will be run, whatever becomes of the file. */
  async #copy(file: string, name: string, size: number, isRunnable: boolean): Promise<string> {
    const { directory, checksums, minFreeMb } = this.#options
    return withDiskErrors(`The image ${name}`, async () => {
      await makeDirectory(directory)
      await requireSpace(directory, minFreeMb(), size)
      const work = await mkdtemp(join(directory, '.copy-'))
      try {
        const copy = join(work, name)
        await copyFile(file, copy, constants.COPYFILE_FICLONE)
        const sha256 = await checksums.hash(copy, 'sha256')
        if (sha256 === undefined) throw conflict(`The image ${name} cannot be read`)
        await this.#requireAdmitted(name, sha256)
        // Users of emulators read it, too; the directories above let nobody in.
        await chmod(copy, isRunnable ? 0o555 : 0o444)
        const place = join(directory, sha256)
        await mkdir(place, { recursive: true, mode: 0o755 })
        await rename(copy, join(place, name))
        return join(place, name)
      } finally {
        await rm(work, { recursive: true, force: true })
      }
    })
  }

  async #requireAdmitted(name: string, sha256: string): Promise<void> {
    if (this.#isListed(sha256) || (await this.#load()).has(sha256)) return
    throw conflict(
      `The image ${name} may not be run: outside local mode programs are run that an administrator uploaded, or whose ` +
        `SHA-256 is in ${setting}; its SHA-256 is ${sha256}`,
    )
  }

  #isListed(sha256: string): boolean {
    return this.#options.listed().some((listed) => listed.toLowerCase() === sha256)
  }

  async #record(sha256: string, name: string): Promise<void> {
    await this.#saves.run(async () => {
      const brought = await this.#load()
      if (brought.has(sha256)) return
      if (brought.size >= maxRecorded) throw conflict(`${maxRecorded} programs are recorded; use ${setting}`)
      const more = new Map(brought).set(sha256, { name, at: new Date().toISOString() })
      await this.#options.records.write(format, Object.fromEntries(more))
      this.#brought = Promise.resolve(more)
    })
  }

  #load(): Promise<Map<string, Brought>> {
    this.#brought ??= this.#options.records.read(format).then(
      ({ value }) => new Map(value),
      (error: unknown) => {
        this.#brought = undefined
        throw error
      },
    )
    return this.#brought
  }
}

function parse(text: string): [string, Brought][] {
  return Object.entries(JSON.parse(text) as Record<string, Partial<Brought>>).map(([sha256, { name, at }]) => {
    if (!/^[0-9a-f]{64}$/.test(sha256) || typeof name !== 'string' || typeof at !== 'string')
      throw new Error('no record')
    return [sha256, { name, at }]
  })
}

/** Which programs an administrator brought, by digest. */
const format: RecordFormat<[string, Brought][]> = {
  file: 'images/executables.json',
  name: 'the programs that an administrator uploaded',
  parse,
  lost: 'upload them again',
}

const refused = (name: string, sha256: string | undefined): Error =>
  forbidden(
    `${name}: it is a program that this host runs, so outside local mode only an administrator (with credentials) uploads ` +
      `it; others may when its SHA-256${sha256 === undefined ? '' : `, ${sha256},`} is in ${setting}`,
  )
