import { closeSync, constants, fstatSync, ftruncateSync, lstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { type Libc, linux } from '../../system/libc.ts'
import { Memory } from './memory.ts'

/** Bytes of struct flock { short type, whence; off_t start, len; pid_t pid; } on 64-bit systems. */
const lockBytes = 32

/**
 * A file that one holder at a time has locked. Other programs that take a POSIX record lock on it see ours, and we theirs; it
 * goes with its holder, however that ends.
 */
export class LockFile {
  readonly #path: string
  readonly #fd: number

  private constructor(path: string, fd: number) {
    this.#path = path
    this.#fd = fd
  }

  /** Undefined when somebody else has it. */
  static take(libc: Libc, path: string): LockFile | undefined {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
    for (;;) {
      const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
      try {
        if (!lock(libc, fd)) {
          closeSync(fd)
          return undefined
        }
        // The holder before us may have removed it between the two calls.
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

  /** Whether another process has it. What this process has as a record lock is lost by asking (fcntl(2)). */
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
  // The lock of an open file, which the record locks of other processes meet all the same; and another holder in this process.
  if (libc.fcntl(fd, linux.F_OFD_SETLK, whole.address) === 0) return true
  return libc.errno() === linux.EINVAL && libc.fcntl(fd, linux.F_SETLK, whole.address) === 0
}
