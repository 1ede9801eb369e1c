import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Creates the data directory with its parents. Throws the system's error when it cannot be created or written to. Creates one
 * directory at a time: `recursive` loops forever where the system denies the existence of a parent (/proc).
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
    // On a full disk the service still starts, to delete things.
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    rmSync(probe, { force: true })
  }
}
