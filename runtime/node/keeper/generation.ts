import { createHash } from 'node:crypto'
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { protocolVersion } from '../keeper-protocol/protocol.ts'
import { build } from '../system/version.ts'

/**
 * Keepers have generations. Every build of the program has a directory for its keeper, `run/keepers/{protocol}-{build}`, so
 * that a keeper is never asked to start something by a service of another build, and never loads program files that an
 * upgrade has replaced. The keeper of 0.1.0 is in `run` itself.
 */
export const generation = (): string => `${protocolVersion}-${build}`

/** The directory of the keeper of this build. */
export const keeperDirectory = (dataDirectory: string): string => join(dataDirectory, 'run', 'keepers', generation())

/** The directories of keepers of other builds that are there, or left something. */
export function otherKeeperDirectories(dataDirectory: string): string[] {
  const run = join(dataDirectory, 'run')
  const keepers = join(run, 'keepers')
  const others = existsSync(keepers) ? readdirSync(keepers).map((name) => join(keepers, name)) : []
  const first = existsSync(join(run, 'keeper.sock')) || existsSync(join(run, 'children')) ? [run] : []
  return [...first, ...others.filter((directory) => directory !== keeperDirectory(dataDirectory))]
}

/** Name of the abstract socket that the keeper of a directory holds as long as it lives, however it ends. */
export function lockName(directory: string): string {
  const name = createHash('sha256').update(realpathSync(directory)).digest('hex').slice(0, 32)
  return `\0patchbay-keeper-${process.getuid?.() ?? 0}-${name}`
}

/** Whether a keeper lives in the directory, also one that does not answer. */
export function hasKeeper(directory: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path: lockName(directory) })
    const settle = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', () => settle(true))
    // Many that wait to be let in are a sign of one that hangs.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => settle(code === 'EAGAIN'))
  })
}
