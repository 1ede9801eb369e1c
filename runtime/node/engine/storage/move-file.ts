import { link, lstat, rename, unlink } from 'node:fs/promises'

/**
 * Gives a file another path on the same disk. Rejects with EEXIST when there is something at that path, also what came there a moment ago:
 * `rename` would replace it, `link` does not (link(2)). A crash leaves the file at one of the paths, or at both.
 */
export async function moveToFree(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    // A file system without hard links.
    if (!['EPERM', 'ENOTSUP', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    if ((await lstat(to).catch(() => undefined)) !== undefined)
      throw Object.assign(new Error(`There is something at ${to}`), { code: 'EEXIST' })
    return rename(from, to)
  }
  await unlink(from)
}
