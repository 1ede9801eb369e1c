import { existsSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { readOwn, replaceOwn, type Staged, stageOwn } from '../storage/own-files.ts'

export const startupConfigName = 'startup-config.cfg'
export const privateConfigName = 'private-config.cfg'
export type ConfigName = typeof startupConfigName | typeof privateConfigName

/** Limit of a configuration file; the largest NVRAM has this size. */
const maxBytes = 1 << 20

/** A configuration file in the directory of a router; null when there is none. */
export async function readConfig(directory: string, name: ConfigName): Promise<string | null> {
  const file = await readOwn(directory, name, maxBytes)
  return file === undefined ? null : configText(file.bytes)
}

/** The name of a configuration file; null when there is none. */
export const namedConfig = (directory: string, name: ConfigName): ConfigName | null =>
  existsSync(join(directory, name)) ? name : null

/** Writes a configuration of a new router, unless a saved lab has one. Returns whether the text was written. */
export async function createConfig(directory: string, name: ConfigName, text: string | null, router: string) {
  const before = await lstat(join(directory, name)).catch(() => undefined)
  if (before !== undefined && (!text || before.size !== 0)) return false
  await replaceOwn(directory, name, named(text ?? '', router))
  return true
}

type ConfigTexts = { readonly [Name in ConfigName]?: string | null | undefined }

/** Stages new configurations; `commit` puts them in place. An empty text changes nothing. 409 when a file cannot be written. */
export async function stageConfigs(directory: string, texts: ConfigTexts, router: string): Promise<Staged> {
  const staged: Staged[] = []
  const discard = async () => {
    for (const it of staged) await it.discard()
  }
  try {
    for (const [name, text] of Object.entries(texts)) {
      if (text) staged.push(await stageOwn(directory, name, named(text, router)))
    }
  } catch (error) {
    await discard()
    throw error
  }
  return {
    discard,
    async commit() {
      for (const it of staged) await it.commit()
    },
  }
}

/** Writes a configuration that the router saved; `asBackup` keeps the old file. Returns whether the text differs. */
export async function saveConfig(
  directory: string,
  name: ConfigName,
  text: string | null,
  asBackup = false,
): Promise<boolean> {
  if (!text) return false
  // A link or a socket is not read, but replaced.
  const before = await readOwn(directory, name, maxBytes).catch(() => undefined)
  if (before !== undefined && configText(before.bytes).replaceAll('\r\n', '\n') === text) return false
  if (asBackup && before !== undefined) await replaceOwn(directory, `${name}.bak`, before.bytes)
  await replaceOwn(directory, name, text)
  return true
}

/** Replaces `%h` by the name of the router. */
export const named = (text: string, router: string): string => text.replaceAll('%h', () => router)

/** Changes the lines `hostname {before}` after a rename. */
export const renamed = (text: string, before: string, after: string): string =>
  text.replace(/^(hostname[ \t]+)(.*?)([ \t\r]*)$/gm, (line, start: string, name: string, end: string) =>
    name === before ? start + after + end : line,
  )

/** Changes them in the startup configuration of a directory. */
export async function renameInConfig(directory: string, before: string, after: string): Promise<void> {
  const text = await readConfig(directory, startupConfigName)
  const edited = renamed(text ?? '', before, after)
  if (text === null || edited === text) return
  await replaceOwn(directory, startupConfigName, edited)
}

/** The text of a configuration: UTF-8, or Latin-1 for other bytes, so that no byte is lost. */
export function configText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return bytes.toString('latin1')
  }
}
