import { closeSync, constants, fchmodSync, fstatSync, mkdirSync, openSync } from 'node:fs'
import { KeeperError } from '../../keeper/protocol/error.ts'

/** Directory of the sockets of this user's IOU instances and bridges, by application id. */
export const netioDirectory = (): string => `/tmp/netio${process.getuid?.() ?? 0}`

/** Creates the directory, or checks that it belongs to this user and makes it private. `no_privilege` otherwise. */
export function claimDirectory(path: string): void {
  const refuse = (reason: string, cause?: unknown): never => {
    throw new KeeperError('no_privilege', `${path} ${reason}: remove it, because IOU needs it for its sockets`, {
      cause,
    })
  }
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') refuse('cannot be made', error)
  }
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
  let fd: number
  try {
    fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch (error) {
    return refuse('is not a directory of this user', error)
  }
  try {
    const { uid, mode } = fstatSync(fd)
    if (uid !== process.getuid?.()) refuse('belongs to another user')
    if ((mode & 0o777) !== 0o700) fchmodSync(fd, 0o700)
  } finally {
    closeSync(fd)
  }
}
