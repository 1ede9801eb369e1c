import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { conflict } from '../../../../src/errors/api-error.ts'
import { diskError, withDiskErrors } from '../../storage/disk.ts'

/**
 * Files in the directory of a router. Clients and the router itself put there what they like: only regular files are opened,
 * no link is followed, nothing blocks, and nothing is read without a bound.
 */

export interface OwnFile {
  readonly bytes: Buffer
  /** When it was written, ms. */
  readonly writtenAt: number
}

/** The file of that name; undefined when there is none, 409 when it is something else, or longer than that. */
export async function readOwn(directory: string, name: string, maxBytes: number): Promise<OwnFile | undefined> {
  return withDiskErrors(`Reading ${name}`, async () => {
    const handle = await openOwn(directory, name)
    if (handle === undefined) return undefined
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) throw noFile(name)
      if (stats.size > maxBytes) throw conflict(`${name} has ${stats.size} bytes, expected at most ${maxBytes}`)
      return { bytes: await ownFileBytes(handle, stats.size), writtenAt: stats.mtimeMs }
    } finally {
      await handle.close()
    }
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
    // A link, a socket.
    throw code === 'ELOOP' || code === 'ENXIO' ? noFile(name) : diskError(`Reading ${name}`, error)
  }
}

/** So many bytes, or fewer when it has become shorter. */
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

/** When a file was written, ms; 0 when there is none, or nothing in it. */
export async function timeOf(directory: string, name: string): Promise<number> {
  return lstat(join(directory, name)).then(
    ({ mtimeMs, size }) => (size === 0 ? 0 : mtimeMs),
    () => 0,
  )
}

/** A file that is ready to take its place. */
export interface Staged {
  /** Takes the place of whatever has the name but a directory. */
  commit(): Promise<void>
  discard(): Promise<void>
}

/** Writes a file beside the one that it is to replace. */
export async function stageOwn(directory: string, name: string, content: string | Buffer): Promise<Staged> {
  const file = join(directory, name)
  const temporary = `${file}.${randomBytes(6).toString('hex')}.writing`
  const discard = () => rm(temporary, { force: true })
  const clean = (error: unknown) =>
    discard().then(() => {
      throw diskError(`Writing ${name}`, error)
    })
  // Else the last of several would find it only when the others are in their places.
  if ((await lstat(file).catch(() => undefined))?.isDirectory()) {
    throw conflict(`Writing ${name}: a directory is in the way`)
  }
  await writeFile(temporary, content, { mode: 0o600, flag: 'wx', flush: true }).catch(clean)
  return { commit: () => rename(temporary, file).catch(clean), discard }
}

/** Replaces a file: there is the old one or the new one, never less. */
export async function replaceOwn(directory: string, name: string, content: string | Buffer): Promise<void> {
  const staged = await stageOwn(directory, name, content)
  await staged.commit()
}

const left = /\.[0-9a-f]{12}\.writing$/

/** Removes what a service left that was killed while it wrote. */
export async function removeStaged(directory: string): Promise<void> {
  const names = await readdir(directory)
  await Promise.all(names.filter((name) => left.test(name)).map((name) => rm(join(directory, name), { force: true })))
}
