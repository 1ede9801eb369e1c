import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Static, TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { GroupCommit } from '../../../../src/lib/async/group-commit.ts'
import { NewerRecord, requireKnownVersion } from './newer-record.ts'

const temporaryMark = '.writing-'

/** Records of a newer version, which must not be overwritten. */
const newer = new Map<string, NewerRecord>()

/**
 * Writes a record atomically: temporary file, fsync, rename, fsync of the directory (fsync(2)). A crash leaves the old record or
 * the new one. The previous version stays as `{path}.bak`. Throws NewerRecord (409) when a newer version wrote the record that was
 * read.
 */
export async function writeDurable(path: string, text: string): Promise<void> {
  const found = newer.get(path)
  if (found !== undefined) throw found
  const directory = dirname(path)
  const temporary = temporaryOf(path)
  try {
    {
      await using file = await open(temporary, 'wx', 0o600)
      await file.writeFile(text)
      await file.sync()
    }
    const isKept = await keepBefore(path, `${temporary}.bak`)
    await rename(temporary, path)
    // Only after the rename: until then the old backup may be the only readable version.
    if (isKept) await rename(`${temporary}.bak`, `${path}.bak`)
  } catch (error) {
    await rm(temporary, { force: true })
    await rm(`${temporary}.bak`, { force: true })
    throw error
  }
  await syncDirectory(directory)
}

/** A new name beside a file, for its next version until that is complete; `removeTemporaries` removes what a crash has left. */
export const temporaryOf = (path: string): string =>
  join(dirname(path), `${temporaryMark}${basename(path)}-${randomBytes(6).toString('hex')}`)

/** Creates a directory with mode 0700, with its parents. */
export async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
}

/**
 * Reads a record with `parse`, which throws on invalid text. A damaged record is replaced by its backup (`damaged`). Undefined when
 * both are missing. Rejects with NewerRecord for a record of a newer version, which is then never overwritten.
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

/** Parses JSON of a schema; throws on other text. */
export const jsonOf =
  <T extends TSchema>(schema: T) =>
  (text: string): Static<T> => {
    const value: unknown = JSON.parse(text)
    if (Check(schema, value)) return value
    throw new Error('the content is malformed')
  }

/**
 * Removes a record and its backup durably (fsync of the directory, fsync(2)). The backup goes first: alone, it would be read. Does
 * nothing for a missing record.
 */
export async function removeDurable(path: string): Promise<void> {
  await unlinkIfThere(`${path}.bak`)
  await unlinkIfThere(path)
  await syncIfThere(dirname(path))
}

/** Removes the backup of a record, for content that must not come back. */
export async function removeVersionBefore(path: string): Promise<void> {
  await unlinkIfThere(`${path}.bak`)
  await syncIfThere(dirname(path))
}

/** Removes a directory tree durably. */
export async function removeTreeDurable(path: string): Promise<void> {
  await removeTree(path)
  await syncIfThere(dirname(path))
}

/** Removes a directory tree; does nothing when it is missing. */
export async function removeTree(path: string): Promise<void> {
  // An empty directory takes one call.
  await rmdir(path).catch(() => rm(path, { recursive: true, force: true, maxRetries: 3 }))
}

/** Renames a record durably; its backup is removed first. False when the record is missing. */
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

const ignoreMissing = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'ENOENT') throw error
}

/** One system call; `rm` with `force` makes three. */
const unlinkIfThere = (path: string): Promise<void> => unlink(path).catch(ignoreMissing)

/** A missing directory needs no sync. */
const syncIfThere = (directory: string): Promise<void> => syncDirectory(directory).catch(ignoreMissing)

/** Removes temporary files of killed writers. */
export async function removeTemporaries(directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => [])
  const left = names.filter((name) => name.startsWith(temporaryMark))
  await Promise.all(left.map((name) => rm(join(directory, name), { force: true })))
}

/** Links the current version to a second name; false when there is nothing to keep. */
async function keepBefore(path: string, temporary: string): Promise<boolean> {
  try {
    await link(path, temporary)
    return true
  } catch (error) {
    // No earlier version, or a file system without hard links; the write itself is still atomic.
    if (!['ENOENT', 'EPERM', 'ENOTSUP', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return false
  }
}

const syncs = new GroupCommit()

/** Makes changes of directory entries durable (fsync(2)). Concurrent changes of one directory share a sync. */
export const syncDirectory = (directory: string): Promise<void> =>
  syncs.run(directory, async () => {
    await using handle = await open(directory, 'r')
    await handle.sync()
  })
