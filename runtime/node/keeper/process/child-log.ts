import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'

/**
 * Clients and the child itself can write to the directory of the log. Therefore the keeper opens only regular files, follows no
 * link, and never blocks.
 */
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** Opens the log for appending. Throws unless it is a regular file. */
export function openChildLog(path: string): number {
  const descriptor = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  throw new Error(`its log, ${path}, is not a file`)
}

/** The end of a log's content after the offset `start`; empty if the log cannot be read. */
export async function endOfChildLog(path: string, start: number, maxBytes: number): Promise<Buffer> {
  try {
    await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    const stats = await file.stat()
    if (!stats.isFile()) return Buffer.alloc(0)
    // A smaller file has been rewritten.
    const written = stats.size < start ? stats.size : stats.size - start
    const bytes = Buffer.alloc(Math.min(written, maxBytes))
    await file.read(bytes, 0, bytes.length, stats.size - bytes.length)
    return bytes
  } catch {
    return Buffer.alloc(0)
  }
}
