import { chmod, rename, stat } from 'node:fs/promises'

/** A file that cannot be read is not written over: a person may mend `{path}.damaged`. False when there is none. */
export async function putAside(path: string): Promise<boolean> {
  try {
    await rename(path, `${path}.damaged`)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** A file with secrets that others may read, as it may have been copied here; nothing is done where there is none. */
export async function closeToOthers(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found !== undefined && (found.mode & 0o077) !== 0) await chmod(path, 0o600)
}
