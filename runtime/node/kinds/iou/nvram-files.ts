import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../../../../src/errors/api-error.ts'
import { type ConfigName, nvramName, privateConfigName, readConfig, saveConfig, startupConfigName } from './configs.ts'
import { type RouterConfigs, readConfigs, writeConfigs } from './nvram.ts'
import { type OwnFile, readOwn, replaceOwn, timeOf } from './own-files.ts'

/** The largest NVRAM. */
const maxBytes = 1 << 20
/** A router that writes does not pause for so long, ms. */
const settleMs = 500

const read = (directory: string, applicationId: number): Promise<OwnFile | undefined> =>
  readOwn(directory, nvramName(applicationId), maxBytes)

/** Puts the configuration files of a router into its NVRAM, so that it starts with them; what should be told of it. */
export async function pushConfigs(
  directory: string,
  applicationId: number,
  sizeKb: number,
): Promise<readonly string[]> {
  const before = await read(directory, applicationId)
  const startup = await readConfig(directory, startupConfigName)
  const secret = await readConfig(directory, privateConfigName)
  const configs = { startup: startup || null, private: secret || null }
  const { nvram, warnings } = writeConfigs(before?.bytes, configs, sizeKb)
  await replaceOwn(directory, nvramName(applicationId), nvram)
  return warnings
}

/** Why the NVRAM is looked at. */
export interface Look {
  readonly isRunning: boolean
  /** `changed`: it was just written. `asked`: somebody wants to know. `in case`: it may have been written. */
  readonly why: 'changed' | 'asked' | 'in case'
}

interface Stored {
  readonly configs: RouterConfigs
  /** Whether the checksum is the right one. */
  readonly isSure: boolean
  readonly writtenAt: number
}

/** What the NVRAM of a router holds; undefined when there is none. 409 when it cannot be read, as while it is written. */
export async function storedConfigs(
  directory: string,
  applicationId: number,
  look: Look,
): Promise<RouterConfigs | undefined> {
  return (await stored(directory, applicationId, look))?.configs
}

/** The same, but null where the file was replaced since: what was written last counts. */
export async function currentConfigs(
  directory: string,
  applicationId: number,
  look: Look,
): Promise<RouterConfigs | undefined> {
  const found = await stored(directory, applicationId, look)
  if (found === undefined) return undefined
  const { configs, writtenAt } = found
  const counts = async (name: ConfigName) => (await timeOf(directory, name)) <= writtenAt
  return {
    startup: (await counts(startupConfigName)) ? configs.startup : null,
    private: (await counts(privateConfigName)) ? configs.private : null,
  }
}

async function stored(directory: string, applicationId: number, { isRunning, why }: Look): Promise<Stored | undefined> {
  const file = await read(directory, applicationId)
  if (file === undefined) return undefined
  const { bytes, writtenAt } = file
  try {
    return { configs: readConfigs(bytes), isSure: true, writtenAt }
  } catch (error) {
    // Images may sum in their own way, so another checksum is taken too, where nobody can be writing the file any more. While
    // the router runs, that checksum is all that tells half a file from a whole one.
    if (!(error instanceof ApiError) || (isRunning && why !== 'asked')) throw error
    const configs = readConfigs(bytes, { anySum: true })
    // Nothing was written yet where that is.
    if (`${configs.startup}${configs.private}`.includes('\0')) throw error
    if (isRunning && !(await isStill(directory, applicationId, bytes))) throw error
    return { configs, isSure: false, writtenAt }
  }
}

/** Whether the file is the same some time later. */
async function isStill(directory: string, applicationId: number, bytes: Buffer): Promise<boolean> {
  await delay(settleMs)
  const later = await read(directory, applicationId)
  return later?.bytes.equals(bytes) ?? false
}

/**
 * Copies the configurations from the NVRAM into the files. 409 when it cannot be read. Unless that was just written, what was
 * written last counts: a file that a client has replaced since is what the next start is to have. What another checksum
 * makes doubtful does not take the place of a file for ever: that is kept as a backup, and told.
 */
export async function pullConfigs(
  directory: string,
  applicationId: number,
  look: Look,
): Promise<readonly ConfigName[]> {
  const found = await stored(directory, applicationId, look)
  if (found === undefined) return []
  const { configs, isSure, writtenAt } = found
  const doubtful: ConfigName[] = []
  for (const [name, text] of [
    [startupConfigName, configs.startup],
    [privateConfigName, configs.private],
  ] as const) {
    if (look.why !== 'changed' && (await timeOf(directory, name)) > writtenAt) continue
    const isOther = await saveConfig(directory, name, text, !isSure)
    if (isOther && !isSure) doubtful.push(name)
  }
  return doubtful
}
