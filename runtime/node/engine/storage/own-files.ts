import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { diskError, withDiskErrors } from './disk.ts'

/**
 * Files in the directory of a node. Clients and the emulator can write there, so only regular files are opened, no link is
 * followed, no open blocks, and each read has a limit.
 */

export interface OwnFile {
  readonly bytes: Buffer
  /** Time of the last write, ms. */
  readonly writtenAt: number
}

/** Reads a file; undefined when it is missing, 409 when it is no regular file or longer than `maxBytes`. */
export async function readOwn(directory: string, name: string, maxBytes: number): Promise<OwnFile | undefined> {
  return withDiskErrors(`Reading ${name}`, async () => {
    await using handle = await openOwn(directory, name)
    if (handle === undefined) return undefined
    const stats = await handle.stat()
    if (!stats.isFile()) throw noFile(name)
    if (stats.size > maxBytes) throw conflict(`${name} has ${stats.size} bytes, expected at most ${maxBytes}`)
    return { bytes: await ownFileBytes(handle, stats.size), writtenAt: stats.mtimeMs }
  })
}

const noFile = (name: string) => conflict(`${name} is not a file`)

async function openOwn(directory: string, name: string): Promise<FileHandle | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  try {
    return await open(join(directory, name), flags)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    // ELOOP: a link; ENXIO: a socket (open(2)).
    throw code === 'ELOOP' || code === 'ENXIO' ? noFile(name) : diskError(`Reading ${name}`, error)
  }
}

/** The first `size` bytes, or fewer when the file has become shorter. */
async function ownFileBytes(handle: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size)
  let filled = 0
  while (filled < size) {
    const { bytesRead } = await handle.read(bytes, filled, size - filled, filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

/** Time of the last write of a file, ms; 0 when the file is missing or empty. */
export async function timeOf(directory: string, name: string): Promise<number> {
  return lstat(join(directory, name)).then(
    ({ mtimeMs, size }) => (size === 0 ? 0 : mtimeMs),
    () => 0,
  )
}

/** A new version of a file, written but not yet in place. */
export interface Staged {
  /** Replaces the file, or anything else of its name but a directory. */
  commit(): Promise<void>
  discard(): Promise<void>
}

/** Only the service reads and writes a file, unless its caller says otherwise. */
const ownMode = 0o600

/** Writes a new version beside the file. */
export async function stageOwn(
  directory: string,
  name: string,
  content: string | Buffer,
  mode = ownMode,
): Promise<Staged> {
  const file = join(directory, name)
  const temporary = `${file}.${randomBytes(6).toString('hex')}.writing`
  const discard = () => rm(temporary, { force: true })
  const clean = (error: unknown) =>
    discard().then(() => {
      throw diskError(`Writing ${name}`, error)
    })
  // Checked here, so that one of several staged files cannot fail after the others were committed.
  if ((await lstat(file).catch(() => undefined))?.isDirectory()) {
    throw conflict(`Writing ${name}: a directory is in the way`)
  }
  await writeFile(temporary, content, { mode, flag: 'wx', flush: true }).catch(clean)
  return { commit: () => rename(temporary, file).catch(clean), discard }
}

/** Replaces a file atomically. */
export async function replaceOwn(
  directory: string,
  name: string,
  content: string | Buffer,
  mode = ownMode,
): Promise<void> {
  const staged = await stageOwn(directory, name, content, mode)
  await staged.commit()
}

const stagedName = /\.[0-9a-f]{12}\.writing$/

/** Removes the staged files of a service that was killed. */
export async function removeStaged(directory: string): Promise<void> {
  const names = await readdir(directory)
  await Promise.all(
    names.filter((name) => stagedName.test(name)).map((name) => rm(join(directory, name), { force: true })),
  )
}
