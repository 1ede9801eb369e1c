import { createHash } from 'node:crypto'
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isLocked, type LockName } from '../../os/system/process-lock.ts'
import { build } from '../../os/system/version.ts'
import { protocolVersion } from '../protocol/protocol.ts'

/**
 * Every build of the program has its own keeper, in `run/keepers/{protocol}-{build}`. A service never asks a keeper of another
 * build to start a node, and a keeper never loads program files that an upgrade has replaced. The keeper of 0.1.0 is in `run`
 * itself.
 */
export const generation = (): string => `${protocolVersion}-${build}`

/** Exit codes of a new keeper: another keeper has the directory, and serves instead; the program files are of another build. */
export const exitCode = { taken: 3, replaced: 4 } as const

/** The directory of the keeper of this build. */
export const keeperDirectory = (dataDirectory: string): string => join(dataDirectory, 'run', 'keepers', generation())

/** The directories of the keepers of other builds, running or not. */
export function otherKeeperDirectories(dataDirectory: string): string[] {
  const run = join(dataDirectory, 'run')
  const keepers = join(run, 'keepers')
  const others = existsSync(keepers) ? readdirSync(keepers).map((name) => join(keepers, name)) : []
  const first = existsSync(join(run, 'keeper.sock')) || existsSync(join(run, 'children')) ? [run] : []
  return [...first, ...others.filter((directory) => directory !== keeperDirectory(dataDirectory))]
}

/** The lock that a keeper has on its directory. */
export function lockOf(directory: string): LockName {
  const name = createHash('sha256').update(realpathSync(directory)).digest('hex').slice(0, 32)
  return { file: join(directory, 'keeper.lock'), socket: `patchbay-keeper-${process.getuid?.() ?? 0}-${name}` }
}

/** Whether a keeper runs in the directory, even if it does not answer. */
export const hasKeeper = async (directory: string): Promise<boolean> => isLocked(lockOf(directory))
