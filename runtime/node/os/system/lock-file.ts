import { closeSync, constants, fstatSync, ftruncateSync, lstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { type Libc, linux, type Pointer } from './libc.ts'

/** struct flock { short type, whence; off_t start, len; pid_t pid; } on 64-bit systems. Kept for all calls, so that its memory stays. */
const flock = new DataView(new ArrayBuffer(32))

/**
 * A lock file with one holder at a time. The lock conflicts with POSIX record locks of other programs (fcntl(2)). The kernel
 * releases it with the process; programs that the process starts do not inherit it (Node opens files with O_CLOEXEC).
 */
export class LockFile {
  readonly #path: string
  readonly #fd: number

  private constructor(path: string, fd: number) {
    this.#path = path
    this.#fd = fd
  }

  /** Undefined when another holder has the lock. Throws the system's error, and `LocksUnsupported`. */
  static acquire(libc: Libc, path: string): LockFile | undefined {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
    for (;;) {
      const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
      try {
        if (!lock(libc, fd, path)) {
          closeSync(fd)
          return undefined
        }
        // The previous holder may have removed the file between open and lock.
        if (fstatSync(fd).ino === lstatSync(path, { throwIfNoEntry: false })?.ino) {
          writePid(fd)
          return new LockFile(path, fd)
        }
      } catch (error) {
        closeSync(fd)
        throw error
      }
      closeSync(fd)
    }
  }

  /**
   * Whether another process has the lock. Throws `LocksUnsupported`. The check releases record locks of this process (fcntl(2)).
   */
  static isHeld(libc: Libc, path: string): boolean {
    const { O_RDWR, O_NOFOLLOW } = constants
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false
    const fd = openSync(path, O_RDWR | O_NOFOLLOW)
    try {
      if (libc.fcntl(fd, linux.F_GETLK, wholeFile(libc)) < 0) throw new LocksUnsupported(path, libc.errno())
      return flock.getUint16(0, true) !== linux.F_UNLCK
    } finally {
      closeSync(fd)
    }
  }

  /** Removes the file. */
  release(): void {
    rmSync(this.#path, { force: true })
    this.leave()
  }

  /** Leaves the file where it is. */
  leave(): void {
    closeSync(this.#fd)
  }
}

/** The file system has no locks, as NFS without its lock service (ENOLCK). */
export class LocksUnsupported extends Error {
  override readonly name = 'LocksUnsupported'

  constructor(path: string, errno: number) {
    super(`${path} cannot be locked: errno ${errno}`)
  }
}

function lock(libc: Libc, fd: number, path: string): boolean {
  const whole = wholeFile(libc)
  // An open file description lock: it conflicts with record locks of other processes, and with other holders in this process.
  if (libc.fcntl(fd, linux.F_OFD_SETLK, whole) === 0) return true
  // Before Linux 3.15, and in sandboxes that imitate it.
  if (libc.errno() === linux.EINVAL && libc.fcntl(fd, linux.F_SETLK, whole) === 0) return true
  const errno = libc.errno()
  if (errno === linux.EAGAIN || errno === linux.EACCES) return false
  throw new LocksUnsupported(path, errno)
}

/** The address of `flock`, which then means a write lock of the whole file. */
function wholeFile(libc: Libc): Pointer {
  const bytes = new Uint8Array(flock.buffer)
  bytes.fill(0)
  flock.setUint16(0, linux.F_WRLCK, true)
  return libc.addressOf(bytes)
}

/** For people who look for the holder. A full disk does not matter. */
function writePid(fd: number): void {
  try {
    ftruncateSync(fd)
    writeSync(fd, `${process.pid}\n`)
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
