import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import {
  type ConfigName,
  privateConfigName,
  readConfig,
  saveConfig,
  startupConfigName,
} from '../../engine/nodes/router-configs.ts'
import { type OwnFile, readOwn, replaceOwn, timeOf } from '../../engine/storage/own-files.ts'
import { nvramName } from './configs.ts'
import { type RouterConfigs, readConfigs, writeConfigs } from './nvram.ts'

/** Limit of an NVRAM file. */
const maxBytes = 1 << 20
/** A pause between two writes of a router is shorter, ms. */
const settleMs = 500

const read = (directory: string, applicationId: number): Promise<OwnFile | undefined> =>
  readOwn(directory, nvramName(applicationId), maxBytes)

/** Writes the configuration files of a router into its NVRAM before a start. Returns warnings. */
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

/** Why the NVRAM is read. */
export interface ReadContext {
  readonly isRunning: boolean
  /** `changed`: the router just wrote it. `requested`: for a client. `in case`: the router may have written it. */
  readonly why: 'changed' | 'requested' | 'in case'
}

interface Stored {
  readonly configs: RouterConfigs
  /** Whether the checksum is right. */
  readonly isSure: boolean
  readonly writtenAt: number
}

/** The configurations in the NVRAM, with null where the configuration file is newer. Undefined and 409 as for `storedConfigs`. */
export async function currentConfigs(
  directory: string,
  applicationId: number,
  context: ReadContext,
): Promise<RouterConfigs | undefined> {
  const found = await storedConfigs(directory, applicationId, context)
  if (found === undefined) return undefined
  const { configs, writtenAt } = found
  const counts = async (name: ConfigName) => (await timeOf(directory, name)) <= writtenAt
  return {
    startup: (await counts(startupConfigName)) ? configs.startup : null,
    private: (await counts(privateConfigName)) ? configs.private : null,
  }
}

/** Reads the NVRAM; undefined when it is missing. 409 when it is damaged, also while the router writes it. */
export async function storedConfigs(
  directory: string,
  applicationId: number,
  { isRunning, why }: ReadContext,
): Promise<Stored | undefined> {
  const file = await read(directory, applicationId)
  if (file === undefined) return undefined
  const { bytes, writtenAt } = file
  try {
    return { configs: readConfigs(bytes), isSure: true, writtenAt }
  } catch (error) {
    // Some images compute another checksum, so a wrong one is accepted when the router does not write the file now. While the router
    // runs, only the checksum shows that a file is whole.
    if (!(error instanceof ApiError) || (isRunning && why !== 'requested')) throw error
    const configs = readConfigs(bytes, { anySum: true })
    // NULs mark parts that are not yet written.
    if (`${configs.startup}${configs.private}`.includes('\0')) throw error
    if (isRunning && !(await isStill(directory, applicationId, bytes))) throw error
    return { configs, isSure: false, writtenAt }
  }
}

/** Whether the file is unchanged after a pause. */
async function isStill(directory: string, applicationId: number, bytes: Buffer): Promise<boolean> {
  await delay(settleMs)
  const later = await read(directory, applicationId)
  return later?.bytes.equals(bytes) ?? false
}

/**
 * Copies the configurations from the NVRAM into the files. 409 when the NVRAM cannot be read. A file that a client replaced after
 * the last write of the NVRAM is kept, unless `why` is `changed`. With a wrong checksum the old file stays as a backup; returns the
 * names of such files.
 */
export async function pullConfigs(
  directory: string,
  applicationId: number,
  context: ReadContext,
): Promise<readonly ConfigName[]> {
  const found = await storedConfigs(directory, applicationId, context)
  if (found === undefined) return []
  const { configs, isSure, writtenAt } = found
  const doubtful: ConfigName[] = []
  for (const [name, text] of [
    [startupConfigName, configs.startup],
    [privateConfigName, configs.private],
  ] as const) {
    if (context.why !== 'changed' && (await timeOf(directory, name)) > writtenAt) continue
    const isOther = await saveConfig(directory, name, text, !isSure)
    if (isOther && !isSure) doubtful.push(name)
  }
  return doubtful
}
