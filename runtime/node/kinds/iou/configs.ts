import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { conflict } from '../../../../src/errors.ts'
import { translated } from '../../projects/disk.ts'
import { configText } from './config-text.ts'

export const startupConfigName = 'startup-config.cfg'
export const privateConfigName = 'private-config.cfg'
export type ConfigName = typeof startupConfigName | typeof privateConfigName

/** No NVRAM has room for more. */
const mostBytes = 1 << 20

/** A configuration file in the directory of a router; null when there is none. */
export async function readConfig(directory: string, name: ConfigName): Promise<string | null> {
  const file = join(directory, name)
  return translated(`Reading ${name}`, async () => {
    const stats = await statOf(file)
    if (stats === undefined) return null
    if (!stats.isFile()) throw conflict(`${name} is not a file`)
    if (stats.size > mostBytes) throw conflict(`${name} has ${stats.size} bytes, expected at most ${mostBytes}`)
    return configText(await readFile(file))
  })
}

/** The name of a configuration file; null when there is none. */
export const namedConfig = (directory: string, name: ConfigName): ConfigName | null =>
  existsSync(join(directory, name)) ? name : null

/** Of a router that is created: what a saved lab holds counts. Whether the text was written. */
export async function createConfig(directory: string, name: ConfigName, text: string | null, router: string) {
  return write(directory, name, text, router, (size) => size === 0)
}

/** Of a router that is changed: an empty text never takes the place of another one. Whether the text was written. */
export async function updateConfig(directory: string, name: ConfigName, text: string | null, router: string) {
  return write(directory, name, text, router, () => true)
}

async function write(
  directory: string,
  name: ConfigName,
  text: string | null,
  router: string,
  mayReplace: (size: number) => boolean,
): Promise<boolean> {
  const file = join(directory, name)
  return translated(`Writing ${name}`, async () => {
    const before = await statOf(file)
    if (before !== undefined && (!text || !mayReplace(before.size))) return false
    await replaceFile(file, named(text ?? '', router))
    return true
  })
}

/** What a router saved itself takes the place of what was there; nothing does not. Whether it was another text. */
export async function saveConfig(directory: string, name: ConfigName, text: string | null): Promise<boolean> {
  if (!text) return false
  return translated(`Writing ${name}`, async () => {
    const file = join(directory, name)
    if ((await readFile(file, 'utf8').catch(() => undefined)) === text) return false
    await replaceFile(file, text)
    return true
  })
}

/** `%h` stands for the name of the router. */
export const named = (text: string, router: string): string => text.replaceAll('%h', () => router)

/** Follows a change of the name: only the line that sets it is edited, and only when it is the one before. */
export function renamed(text: string, before: string, after: string): string {
  return text.replace(/^(hostname[ \t]+)(.*?)([ \t\r]*)$/gm, (line, start: string, name: string, end: string) =>
    name === before ? start + after + end : line,
  )
}

/** The same in the startup configuration of a directory, if there is one. */
export async function renameInConfig(directory: string, before: string, after: string): Promise<void> {
  const text = await readConfig(directory, startupConfigName)
  const edited = renamed(text ?? '', before, after)
  if (text === null || edited === text) return
  await translated(`Writing ${startupConfigName}`, () => replaceFile(join(directory, startupConfigName), edited))
}

/** Also what has lost its target is there. */
async function statOf(file: string) {
  return (await stat(file).catch(() => undefined)) ?? (await lstat(file).catch(() => undefined))
}

async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.writing`
  try {
    await writeFile(temporary, text, { mode: 0o600, flag: 'wx', flush: true })
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

const fiveDigits = (applicationId: number): string => String(applicationId).padStart(5, '0')
export const nvramName = (applicationId: number): string => `nvram_${fiveDigits(applicationId)}`
export const vlanName = (applicationId: number): string => `vlan.dat-${fiveDigits(applicationId)}`

const kept = [
  { pattern: /^nvram_\d{5}$/, nameOf: nvramName },
  { pattern: /^vlan\.dat-\d{5}$/, nameOf: vlanName },
]

/**
 * Gives what a router keeps the name that it looks for, before it starts with another id than before. What has that name
 * already counts; of several others the newest does.
 */
export async function adoptFiles(directory: string, applicationId: number): Promise<void> {
  await translated('Renaming the files of the router', async () => {
    const names = await readdir(directory)
    for (const { pattern, nameOf } of kept) {
      const wanted = nameOf(applicationId)
      if (names.includes(wanted)) continue
      const newest = await newestOf(
        directory,
        names.filter((name) => pattern.test(name)),
      )
      if (newest !== undefined) await rename(join(directory, newest), join(directory, wanted))
    }
  })
}

async function newestOf(directory: string, names: readonly string[]): Promise<string | undefined> {
  const files = await Promise.all(names.map(async (name) => ({ name, stats: await lstat(join(directory, name)) })))
  return files.filter(({ stats }) => stats.isFile()).sort((a, b) => b.stats.mtimeMs - a.stats.mtimeMs)[0]?.name
}

/** VLANs belong to the configuration: with another one they are those of the old. */
export async function removeVlans(directory: string): Promise<void> {
  await translated('Removing the VLANs of the router', async () => {
    const names = (await readdir(directory)).filter((name) => /^vlan\.dat-\d{5}$/.test(name))
    await Promise.all(names.map((name) => rm(join(directory, name), { force: true })))
  })
}
