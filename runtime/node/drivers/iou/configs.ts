import { lstat, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { removeStaged } from '../../engine/storage/own-files.ts'

const fiveDigits = (applicationId: number): string => String(applicationId).padStart(5, '0')
export const nvramName = (applicationId: number): string => `nvram_${fiveDigits(applicationId)}`
export const vlanName = (applicationId: number): string => `vlan.dat-${fiveDigits(applicationId)}`

const kept = [
  { pattern: /^nvram_\d{5}$/, nameOf: nvramName },
  { pattern: /^vlan\.dat-\d{5}$/, nameOf: vlanName },
]

/** Renames the NVRAM and the VLANs of a router for its application id. Of several files the newest is taken. */
export async function adoptFiles(directory: string, applicationId: number): Promise<void> {
  await withDiskErrors('Renaming the files of the router', async () => {
    await removeStaged(directory)
    const names = await readdir(directory)
    for (const { pattern, nameOf } of kept) {
      const current = nameOf(applicationId)
      if (names.includes(current)) continue
      const candidates = names.filter((name) => pattern.test(name))
      const newest = await newestOf(directory, candidates)
      if (newest !== undefined) await rename(join(directory, newest), join(directory, current))
    }
  })
}

async function newestOf(directory: string, names: readonly string[]): Promise<string | undefined> {
  const files = await Promise.all(names.map(async (name) => ({ name, stats: await lstat(join(directory, name)) })))
  return files.filter(({ stats }) => stats.isFile()).sort((a, b) => b.stats.mtimeMs - a.stats.mtimeMs)[0]?.name
}

/** Removes the VLANs, which belong to the old configuration. */
export async function removeVlans(directory: string): Promise<void> {
  await withDiskErrors('Removing the VLANs of the router', async () => {
    const names = (await readdir(directory)).filter((name) => /^vlan\.dat-\d{5}$/.test(name))
    await Promise.all(names.map((name) => rm(join(directory, name), { force: true })))
  })
}
