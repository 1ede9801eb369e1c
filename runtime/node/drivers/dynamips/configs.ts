import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  configText,
  privateConfigName,
  readConfig,
  saveConfig,
  startupConfigName,
} from '../../engine/nodes/router-configs.ts'
import { readOwn } from '../../engine/storage/own-files.ts'
import { type DynamipsReply, HypervisorError } from './replies.ts'

/** The configurations in the NVRAM of a router. */
export type StoredConfigs = { readonly startup: string; readonly private: string }

/** Limit of an imported file. */
const maxBytes = 1 << 18

/** A configuration that is pushed as this word stays as it is in dynamips. */
const keep = '(keep)'

/** Parses the answer to `vm extract_config`: `conf 'name' 'base64' 'base64'`. */
export function parseConfigs({ text }: DynamipsReply): StoredConfigs {
  const [, startup, secret] = /^conf '[^']*' '([\w+/=]*)' '([\w+/=]*)'$/.exec(text) ?? []
  if (startup === undefined || secret === undefined)
    throw new HypervisorError('protocol', 'vm extract_config: dynamips sent no configurations')
  // IOS ends lines by LF; the NVRAM may have NULs behind the last one.
  const decoded = (base64: string) => Buffer.from(base64, 'base64').toString('utf8').replace(/\0+$/, '')
  return { startup: decoded(startup), private: decoded(secret) }
}

/** The values of `vm push_config` for texts; an empty or absent one is kept. Undefined when none is left. */
export function pushValues(texts: readonly (string | null | undefined)[]): string[] | undefined {
  if (texts.every((text) => !text)) return undefined
  return texts.map((text) => (text ? Buffer.from(text).toString('base64') : keep))
}

/** The configurations in the files of a router: its own, or those of a project that GNS3 made (`configs/i1_startup-config.cfg`). */
export const configsOfFiles = async (directory: string) =>
  Promise.all(
    ([startupConfigName, privateConfigName] as const).map(
      async (name) => (await readConfig(directory, name)) ?? importedConfig(join(directory, 'configs'), name),
    ),
  )

async function importedConfig(directory: string, name: string): Promise<string | null> {
  if (!(await lstat(directory).catch(() => undefined))?.isDirectory()) return null
  const found = (await readdir(directory)).filter((it) => /^i\d+_/.test(it) && it.endsWith(`_${name}`)).sort()[0]
  const file = found === undefined ? undefined : await readOwn(directory, found, maxBytes)
  return file === undefined ? null : configText(file.bytes)
}

/** Writes what the router stored into its files. */
export async function saveConfigs(directory: string, { startup, private: secret }: StoredConfigs): Promise<void> {
  await saveConfig(directory, startupConfigName, startup)
  await saveConfig(directory, privateConfigName, secret)
}
