import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { setNewest } from '../../../../src/lib/async/newest.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { conflict, forbidden } from '../../../../src/lib/errors/api-error.ts'
import type { ImageKindName } from '../../../../src/model/image.ts'
import { kindOf } from '../../../../src/model/kinds/node.ts'
import type { Checksums } from '../storage/checksums.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { jsonOf, makeDirectory } from '../storage/durable-file.ts'
import type { ServiceRecords } from '../storage/service-records.ts'
import type { UploadGroup } from './uploads.ts'

/** Whether images of a kind are programs that this host runs; emulators read the images of other kinds. */
export const isExecutable = (kind: ImageKindName): boolean => kindOf(kind).image?.isProgram === true

const maxRecorded = 10_000
const setting = 'the setting executables'

export interface ExecutablesOptions {
  readonly records: ServiceRecords
  /** The directory of the checked copies that run; the service empties it at its start. */
  readonly directory: string
  /** The setting: SHA-256 digests, in hexadecimal digits. */
  readonly listed: () => readonly string[]
  readonly isLocal: () => boolean
  /** Whether the caller of the current request may bring programs. */
  readonly mayExecute: () => boolean
  readonly checksums: Checksums
  readonly minFreeMb: () => number
}

/** `name`: that of the image at its upload. */
const Brought = Type.Object({ name: Type.String(), at: Type.String() })
type Brought = Static<typeof Brought>
const FileContent = Type.Record(Type.String({ pattern: '^[0-9a-f]{64}$' }), Brought, { additionalProperties: false })

/**
 * The programs that may run outside local mode: uploads of administrators, and the digests in the setting. The service runs a copy
 * that only it can write, and checks the digest of that copy: later changes of the original file have no effect.
 */
export class Executables {
  readonly #options: ExecutablesOptions
  readonly #copies = new Map<string, { readonly stamp: string; readonly copy: Promise<string> }>()
  #brought: Promise<Map<string, Brought>> | undefined
  readonly #saves = new SerialQueue()

  constructor(options: ExecutablesOptions) {
    this.#options = options
  }

  /** Removes the copies of an earlier service; programs that run from them continue. */
  async open(): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true })
  }

  /**
   * The group of the parts of an upload. An administrator does not complete an upload of another user, because the administrator
   * does not know its content.
   */
  get uploadGroup(): UploadGroup {
    return this.#options.mayExecute() ? 'administrators' : ''
  }

  /** 403 before the body of an upload is read, when no digest could be admitted. */
  requireUpload(name: string, sha256: string | undefined): void {
    const { isLocal, mayExecute } = this.#options
    if (isLocal() || mayExecute()) return
    const isHopeless = sha256 === undefined ? this.#options.listed().length === 0 : !this.#isListed(sha256)
    if (isHopeless) throw refused(name, sha256)
  }

  /** 403 when the caller may not delete or rename programs. */
  requireChange(name: string, verb: 'delete' | 'rename'): void {
    const { isLocal, mayExecute } = this.#options
    if (isLocal() || mayExecute()) return
    throw forbidden(
      `${name}: it is a program that this host runs, so outside local mode only an administrator may ${verb} it`,
    )
  }

  /** Checks a complete upload, and records it for an administrator; 403. */
  async admitUpload(file: string, name: string): Promise<void> {
    const { mayExecute, isLocal, checksums } = this.#options
    if (isLocal() && !mayExecute()) return
    const sha256 = await checksums.hash(file, 'sha256')
    if (sha256 === undefined) throw conflict(`${name} cannot be read`)
    if (mayExecute()) return this.#record(sha256, name)
    if (!this.#isListed(sha256)) throw refused(name, sha256)
  }

  /** The path from which a program runs: outside local mode that of a checked copy; 409 when it may not run. */
  async admit(file: string): Promise<string> {
    if (this.#options.isLocal()) return file
    const name = basename(file)
    const stats = await stat(file, { bigint: true }).catch(() => undefined)
    if (stats === undefined) throw conflict(`The image ${name} does not exist`)
    if (!stats.isFile()) throw conflict(`The image ${name} is not a file`)
    const { dev, ino, size, mtimeNs, ctimeNs } = stats
    const stamp = `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
    let known = this.#copies.get(file)
    if (known?.stamp !== stamp) {
      known = { stamp, copy: this.#copy(file, name, Number(size), (stats.mode & 0o111n) !== 0n) }
      setNewest(this.#copies, file, known, maxRecorded)
    }
    const copy = await known.copy.catch((error: unknown) => {
      if (this.#copies.get(file) === known) this.#copies.delete(file)
      throw error
    })
    // The list may have changed since the copy was made.
    await this.#requireAdmitted(name, basename(join(copy, '..')))
    return copy
  }

  async close(): Promise<void> {
    await this.#saves.idle()
  }

  /** Copies first: the digest belongs to the copy that will run, whatever happens to the file. */
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
        // The users of emulators read it, too; the parent directories admit no other user.
        await chmod(copy, isRunnable ? 0o555 : 0o444)
        const target = join(directory, sha256)
        await mkdir(target, { recursive: true, mode: 0o755 })
        await rename(copy, join(target, name))
        return join(target, name)
      } finally {
        await rm(work, { recursive: true, force: true })
      }
    })
  }

  async #requireAdmitted(name: string, sha256: string): Promise<void> {
    if (this.#isListed(sha256) || (await this.#load()).has(sha256)) return
    throw conflict(
      `The image ${name} may not be run: outside local mode a program must be uploaded by an administrator, or its ` +
        `SHA-256 (${sha256}) must be in ${setting}`,
    )
  }

  #isListed(sha256: string): boolean {
    return this.#options.listed().some((listed) => listed.toLowerCase() === sha256)
  }

  async #record(sha256: string, name: string): Promise<void> {
    await this.#saves.run(async () => {
      const brought = await this.#load()
      if (brought.has(sha256)) return
      if (brought.size >= maxRecorded)
        throw conflict(`The limit of ${maxRecorded} recorded programs is reached; use ${setting}`)
      const more = new Map(brought).set(sha256, { name, at: new Date().toISOString() })
      await this.#options.records.write(format, Object.fromEntries(more))
      this.#brought = Promise.resolve(more)
    })
  }

  #load(): Promise<Map<string, Brought>> {
    this.#brought ??= this.#options.records.read(format).then(
      ({ value }) => new Map(Object.entries(value ?? {})),
      (error: unknown) => {
        this.#brought = undefined
        throw error
      },
    )
    return this.#brought
  }
}

/** The uploads of administrators, by digest. */
const format = {
  file: 'images/executables.json',
  name: 'the programs that an administrator uploaded',
  parse: jsonOf(FileContent),
  lost: 'upload them again',
}

const refused = (name: string, sha256: string | undefined): Error =>
  forbidden(
    `${name}: it is a program that this host runs, so outside local mode only an administrator (with credentials) uploads ` +
      `it; others may when its SHA-256${sha256 === undefined ? '' : `, ${sha256},`} is in ${setting}`,
  )
