import { chmod, rename, stat } from 'node:fs/promises'

/**
 * Renames an unreadable file to `{path}.damaged`, so that it is not overwritten and a person can repair it. False when it is
 * missing.
 */
export async function putAside(path: string): Promise<boolean> {
  try {
    await rename(path, `${path}.damaged`)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** Removes the access of other users to a file with secrets; does nothing for a missing file. */
export async function closeToOthers(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found !== undefined && (found.mode & 0o077) !== 0) await chmod(path, 0o600)
}
