import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Makes the data directory with its parents, and throws the error of the system when it cannot be made or nothing can be written
 * there. One directory after the other: `recursive` tries for ever where the system denies that a parent is there (/proc).
 */
export function openDataDirectory(path: string): void {
  const missing: string[] = []
  for (let at = path; statSync(at, { throwIfNoEntry: false }) === undefined; at = dirname(at)) missing.unshift(at)
  for (const at of missing) {
    try {
      mkdirSync(at, { mode: 0o700 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  const probe = join(path, `.writable-${process.pid}`)
  try {
    writeFileSync(probe, '', { mode: 0o600 })
  } catch (error) {
    // A full disk is made emptier by the service.
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    rmSync(probe, { force: true })
  }
}
