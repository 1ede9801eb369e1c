import { lstat, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../../../src/errors.ts'
import { translated } from '../../projects/disk.ts'
import { type ConfigName, nvramName, privateConfigName, readConfig, saveConfig, startupConfigName } from './configs.ts'
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

/**
 * What the NVRAM of a router holds; undefined when there is none. What was written last counts: a configuration is null when its
 * file has been replaced since, but for `isFresh`. 409 when it cannot be read, as while it is written.
 */
export async function storedConfigs(
  directory: string,
  applicationId: number,
  isFresh = false,
): Promise<RouterConfigs | undefined> {
  const path = join(directory, nvramName(applicationId))
  const nvram = await readFile(path).catch(() => undefined)
  if (nvram === undefined) return undefined
  const { startup, private: own } = readConfigs(nvram)
  const writtenAt = await timeOf(path)
  const counts = async (name: ConfigName) => isFresh || (await timeOf(join(directory, name))) <= writtenAt
  return {
    startup: (await counts(startupConfigName)) ? startup : null,
    private: (await counts(privateConfigName)) ? own : null,
  }
}

/** When a file was written, ms; 0 when there is none, or nothing in it. */
const timeOf = (path: string): Promise<number> =>
  lstat(path).then(
    ({ mtimeMs, size }) => (size === 0 ? 0 : mtimeMs),
    () => 0,
  )

/** Copies the configurations from the NVRAM into the files; whether one of them is another one now. */
export async function pullConfigs(directory: string, applicationId: number, isFresh = false): Promise<boolean> {
  const stored = await storedConfigs(directory, applicationId, isFresh)
  if (stored === undefined) return false
  const startup = await saveConfig(directory, startupConfigName, stored.startup)
  const secret = await saveConfig(directory, privateConfigName, stored.private)
  return startup || secret
}

/** The same where nobody can be told; what is damaged stays as it is. */
export async function pullQuietly(
  directory: string,
  applicationId: number,
  isFresh = false,
): Promise<string | undefined> {
  try {
    await pullConfigs(directory, applicationId, isFresh)
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}
