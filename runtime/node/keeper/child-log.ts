import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'

/**
 * The log of a child is in a directory where clients and the child itself put what they like: only a regular file is written
 * or read, no link is followed, and nothing blocks, for the keeper would stand still.
 */
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** A descriptor to append with. Throws for what is no file. */
export function openChildLog(path: string): number {
  const descriptor = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  throw new Error(`its log, ${path}, is not a file`)
}

/** The end of what was written to a log since it had the size `start`; empty where it cannot be read. */
export async function endOfChildLog(path: string, start: number, maxBytes: number): Promise<Buffer> {
  try {
    await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    const stats = await file.stat()
    if (!stats.isFile()) return Buffer.alloc(0)
    // One that is smaller by now was begun anew.
    const written = stats.size < start ? stats.size : stats.size - start
    const bytes = Buffer.alloc(Math.min(written, maxBytes))
    await file.read(bytes, 0, bytes.length, stats.size - bytes.length)
    return bytes
  } catch {
    return Buffer.alloc(0)
  }
}
