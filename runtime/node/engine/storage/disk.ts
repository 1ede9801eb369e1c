import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ApiError, conflict, forbidden, outOfSpace } from '../../../../src/lib/errors/api-error.ts'

/** 507 when less than `minFreeMb` is free on the disk of a directory, or would be after a write of `bytes`. */
export async function requireSpace(directory: string, minFreeMb: number, bytes = 0): Promise<void> {
  await requireWritable(directory)
  const { bavail, bsize } = await statfs(directory).catch(() => ({ bavail: Number.MAX_SAFE_INTEGER, bsize: 1 }))
  const freeMb = Math.floor((bavail * bsize) / 2 ** 20)
  const wantedMb = Math.ceil(bytes / 2 ** 20)
  if (freeMb - wantedMb >= minFreeMb) return
  const more = wantedMb === 0 ? '' : ` beside the ${wantedMb} MB of this`
  throw outOfSpace(
    `Only ${freeMb} MB are free on the disk, ${minFreeMb} are required${more} (min_free_space_mb): free some space first`,
  )
}

/** 507 when a directory is on a disk that cannot be written to. */
async function requireWritable(directory: string): Promise<void> {
  try {
    await access(directory, constants.W_OK)
  } catch (cause) {
    // The next operation in the directory reports other errors.
    if ((cause as NodeJS.ErrnoException).code === 'EROFS') throw readOnly(directory, cause)
  }
}

const readOnly = (path: string, cause: unknown): ApiError =>
  outOfSpace(`The disk that holds ${path} is read-only: mount it for writing, then try again`, { cause })

/** Whether something failed only because the disk is full. */
export function isFull(error: unknown): boolean {
  const cause = error instanceof ApiError ? error.cause : error
  return ['ENOSPC', 'EDQUOT'].includes((cause as NodeJS.ErrnoException | undefined)?.code ?? '')
}

/** Runs an operation on files; turns errors of the file system into API errors with a text for the client. */
export async function withDiskErrors<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    throw diskError(what, cause)
  }
}

export function diskError(what: string, cause: unknown): unknown {
  if (cause instanceof ApiError) return cause
  switch ((cause as NodeJS.ErrnoException).code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return outOfSpace(`${what}: the disk is full; free some space first`, { cause })
    case 'EACCES':
    case 'EPERM':
      return forbidden(`${what}: the service has no permission`, { cause })
    case 'EROFS':
      return readOnly(dirname((cause as NodeJS.ErrnoException).path ?? what), cause)
    case 'EIO':
      return outOfSpace(`${what}: the disk reports errors; see the system log`, { cause })
    case 'EBUSY':
    case 'ENOTEMPTY':
      return conflict(`${what}: another program uses it; end that program and try again`, { cause })
    case 'ENAMETOOLONG':
      return conflict(`${what}: the name is too long for the file system`, { cause })
    case 'ENOTDIR':
    case 'EEXIST':
      return conflict(`${what}: a file is in the way`, { cause })
    case 'EISDIR':
      return conflict(`${what}: a directory is in the way`, { cause })
    case 'ENOENT':
      return conflict(`${what}: a parent directory is missing, or is a dangling link`, { cause })
    case 'ELOOP':
      return conflict(`${what}: symbolic links form a loop`, { cause })
    case 'EMFILE':
    case 'ENFILE':
      return new ApiError(503, `${what}: too many files are open, try again`, { cause })
    default:
      return cause
  }
}
