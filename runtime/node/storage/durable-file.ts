import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { GroupCommit } from '../../../src/async/group-commit.ts'
import { NewerRecord, requireKnownVersion } from './newer-record.ts'

const temporaryMark = '.writing-'

/** Records that a newer program wrote, which nothing here may replace. */
const newer = new Map<string, NewerRecord>()

/**
 * Writes a record so that a crash leaves the old or the new one, never less: temporary file, sync, rename, sync of the
 * directory. The version before stays beside as `{path}.bak`. NewerRecord (409) where
 * the record that was read there is that of a newer program.
 */
export async function writeDurable(path: string, text: string): Promise<void> {
  const found = newer.get(path)
  if (found !== undefined) throw found
  const directory = dirname(path)
  const temporary = join(directory, `${temporaryMark}${basename(path)}-${randomBytes(6).toString('hex')}`)
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    const isKept = await keepBefore(path, `${temporary}.bak`)
    await rename(temporary, path)
    // Only now: until the new record is there, the one kept before may be the only one that can be read.
    if (isKept) await rename(`${temporary}.bak`, `${path}.bak`)
  } catch (error) {
    await rm(temporary, { force: true })
    await rm(`${temporary}.bak`, { force: true })
    throw error
  }
  await syncDirectory(directory)
}

/** Makes a directory that only we may enter, with its parents. */
export async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
}

/**
 * Reads a record with `parse`, which throws on what is no record. A damaged one is replaced by the version before; `damaged`
 * says so. Undefined when there is neither. Rejects with NewerRecord for one that a newer program wrote: from then on it is
 * written over by nobody here.
 */
export async function readDurable<T>(
  path: string,
  parse: (text: string) => T,
): Promise<{ value: T; damaged: boolean } | undefined> {
  let damaged = false
  for (const candidate of [path, `${path}.bak`]) {
    try {
      const text = await readFile(candidate, 'utf8')
      requireKnownVersion(path, text)
      newer.delete(path)
      return { value: parse(text), damaged }
    } catch (error) {
      if (error instanceof NewerRecord) {
        newer.set(path, error)
        throw error
      }
      damaged = true
    }
  }
  return undefined
}

/**
 * Removes a record and the version kept beside it, so that they are gone after a power cut, too (fsync(2): the directory has to be
 * synced). The version before goes first: found alone, it would be read. Nothing is done where there is none.
 */
export async function removeDurable(path: string): Promise<void> {
  await unlinkIfThere(`${path}.bak`)
  await unlinkIfThere(path)
  await syncIfThere(dirname(path))
}

/** Removes the version kept beside a record, for what must not come back with it. */
export async function removeVersionBefore(path: string): Promise<void> {
  await unlinkIfThere(`${path}.bak`)
  await syncIfThere(dirname(path))
}

/** Removes a directory and all that is in it, so that it is gone after a power cut, too. */
export async function removeTreeDurable(path: string): Promise<void> {
  await removeTree(path)
  await syncIfThere(dirname(path))
}

/** Removes a directory and all that is in it. Nothing is done where there is none. */
export async function removeTree(path: string): Promise<void> {
  // An empty one takes a single call.
  await rmdir(path).catch(() => rm(path, { recursive: true, force: true, maxRetries: 3 }))
}

/**
 * Gives a record another name, which lasts over a power cut; the version kept beside it goes first. False when there is no
 * record.
 */
export async function renameDurable(path: string, other: string): Promise<boolean> {
  await unlinkIfThere(`${path}.bak`)
  try {
    await rename(path, other)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return false
  }
  await syncDirectory(dirname(path))
  return true
}

/** One call, where `rm` with `force` makes three. */
async function unlinkIfThere(path: string): Promise<void> {
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}

/** Removes what writers that were killed left behind. */
export async function removeTemporaries(directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => [])
  const left = names.filter((name) => name.startsWith(temporaryMark))
  await Promise.all(left.map((name) => rm(join(directory, name), { force: true })))
}

/** Gives the version before a second name; false when there is none to keep. */
async function keepBefore(path: string, temporary: string): Promise<boolean> {
  try {
    await link(path, temporary)
    return true
  } catch (error) {
    // Nothing to keep yet; or a file system without links, where the write itself is still atomic.
    if (!['ENOENT', 'EPERM', 'ENOTSUP', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return false
  }
}

/** A directory that is gone has nothing in it that could come back. */
async function syncIfThere(directory: string): Promise<void> {
  await syncDirectory(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}

const syncs = new GroupCommit()

/** Makes names that came and went in a directory last over a power cut. Many changes of one directory share a sync. */
export function syncDirectory(directory: string): Promise<void> {
  return syncs.run(directory, async () => {
    const handle = await open(directory, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  })
}
