import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../../../src/errors.ts'
import { translated } from '../../projects/disk.ts'
import { nvramName, privateConfigName, readConfig, saveConfig, startupConfigName } from './configs.ts'
import { type RouterConfigs, readConfigs, writeConfigs } from './nvram.ts'

/** Puts the configuration files of a router into its NVRAM, so that it starts with them; what should be told of it. */
export async function pushConfigs(
  directory: string,
  applicationId: number,
  sizeKb: number,
): Promise<readonly string[]> {
  const path = join(directory, nvramName(applicationId))
  const before = await readFile(path).catch(() => undefined)
  const startup = await readConfig(directory, startupConfigName)
  const secret = await readConfig(directory, privateConfigName)
  const { nvram, warnings } = writeConfigs(before, { startup: startup || null, private: secret || null }, sizeKb)
  const temporary = `${path}.writing`
  await translated(nvramName(applicationId), async () => {
    try {
      await writeFile(temporary, nvram, { mode: 0o600, flush: true })
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
  })
  return warnings
}

/** What the NVRAM of a router holds; undefined when there is none. 409 when it cannot be read, as while it is written. */
export async function storedConfigs(directory: string, applicationId: number): Promise<RouterConfigs | undefined> {
  const nvram = await readFile(join(directory, nvramName(applicationId))).catch(() => undefined)
  return nvram === undefined ? undefined : readConfigs(nvram)
}

/** Copies the configurations from the NVRAM into the files; whether one of them is another one now. */
export async function pullConfigs(directory: string, applicationId: number): Promise<boolean> {
  const stored = await storedConfigs(directory, applicationId)
  if (stored === undefined) return false
  const startup = await saveConfig(directory, startupConfigName, stored.startup)
  const secret = await saveConfig(directory, privateConfigName, stored.private)
  return startup || secret
}

/** The same where nobody can be told; what is damaged stays as it is. */
export async function pullQuietly(directory: string, applicationId: number): Promise<string | undefined> {
  try {
    await pullConfigs(directory, applicationId)
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}
