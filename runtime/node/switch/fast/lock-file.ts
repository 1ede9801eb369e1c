import { closeSync, constants, fstatSync, ftruncateSync, lstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { type Libc, linux } from '../../system/libc.ts'
import { Memory } from './memory.ts'

/** Bytes of struct flock { short type, whence; off_t start, len; pid_t pid; } on 64-bit systems. */
const lockBytes = 32

/**
 * A lock file with one holder at a time. The lock conflicts with POSIX record locks of other programs (fcntl(2)). The kernel
 * releases it with the process.
 */
export class LockFile {
  readonly #path: string
  readonly #fd: number

  private constructor(path: string, fd: number) {
    this.#path = path
    this.#fd = fd
  }

  /** Undefined when another holder has the lock. */
  static take(libc: Libc, path: string): LockFile | undefined {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
    for (;;) {
      const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
      try {
        if (!lock(libc, fd)) {
          closeSync(fd)
          return undefined
        }
        // The previous holder may have removed the file between open and lock.
        if (fstatSync(fd).ino === lstatSync(path, { throwIfNoEntry: false })?.ino) {
          ftruncateSync(fd)
          writeSync(fd, `${process.pid}\n`)
          return new LockFile(path, fd)
        }
      } catch (error) {
        closeSync(fd)
        throw error
      }
      closeSync(fd)
    }
  }

  /** Whether another process has the lock. The check releases record locks of this process (fcntl(2)). */
  static isHeld(libc: Libc, path: string): boolean {
    const { O_RDWR, O_NOFOLLOW } = constants
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false
    const fd = openSync(path, O_RDWR | O_NOFOLLOW)
    try {
      const whole = new Memory(libc, lockBytes)
      whole.u16(0, linux.F_WRLCK)
      if (libc.fcntl(fd, linux.F_GETLK, whole.address) < 0) throw new Error(`${path}: errno ${libc.errno()}`)
      return whole.view.getUint16(0, true) !== linux.F_UNLCK
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

function lock(libc: Libc, fd: number): boolean {
  const whole = new Memory(libc, lockBytes)
  whole.u16(0, linux.F_WRLCK)
  // An open file description lock: it conflicts with record locks of other processes, and with other holders in this process.
  if (libc.fcntl(fd, linux.F_OFD_SETLK, whole.address) === 0) return true
  return libc.errno() === linux.EINVAL && libc.fcntl(fd, linux.F_SETLK, whole.address) === 0
}
