import { closeSync, constants, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { TerminalSize } from '../../../../src/model/schema/console-size.ts'

/** A pseudo-terminal: the child gets the slave as its terminal, the keeper keeps the master. */
export interface Pty {
  readonly master: number
  /** The caller closes it when the child has started. */
  readonly slave: number
}

interface Libc {
  ioctl(fd: number, request: number, argument: Uint8Array): number
  tcgetattr(fd: number, termios: Uint8Array): number
  cfmakeraw(termios: Uint8Array): void
  tcsetattr(fd: number, when: number, termios: Uint8Array): number
}

// asm-generic/ioctls.h
const TIOCSPTLCK = 0x40045431
const TIOCGPTN = 0x80045430
const TIOCSWINSZ = 0x5414

/** Of a terminal that nobody has resized. */
export const usualSize: TerminalSize = { columns: 80, rows: 24 }

let libc: Libc | undefined

/** Loads functions of libc at the first use: most keepers run no program with a terminal. */
function load(): Libc {
  if (libc !== undefined) return libc
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
  const library = koffi.load('libc.so.6')
  libc = {
    ioctl: library.func('int ioctl(int fd, unsigned long request, void *argument)'),
    tcgetattr: library.func('int tcgetattr(int fd, void *termios)'),
    cfmakeraw: library.func('void cfmakeraw(void *termios)'),
    tcsetattr: library.func('int tcsetattr(int fd, int when, void *termios)'),
  }
  return libc
}

/** Sets the size of a terminal, by its master or its slave. Its programs get SIGWINCH when it has changed (ioctl_tty(2)). */
export function setTerminalSize(descriptor: number, { columns, rows }: TerminalSize): void {
  load().ioctl(descriptor, TIOCSWINSZ, new Uint8Array(Uint16Array.of(rows, columns, 0, 0).buffer))
}

/** Opens a raw pseudo-terminal of 80 by 24: the kernel neither echoes nor translates line ends. Throws when none can be opened. */
export function openPty(): Pty {
  const { ioctl, tcgetattr, cfmakeraw, tcsetattr } = load()
  const flags = constants.O_RDWR | constants.O_NOCTTY
  const master = openSync('/dev/ptmx', flags)
  try {
    const number = new Uint32Array(1)
    if (ioctl(master, TIOCSPTLCK, new Uint8Array(4)) !== 0) throw new Error('the pseudo-terminal cannot be unlocked')
    if (ioctl(master, TIOCGPTN, new Uint8Array(number.buffer)) !== 0)
      throw new Error('the pseudo-terminal has no number')
    const slave = openSync(`/dev/pts/${number[0]}`, flags)
    // struct termios is 60 bytes in glibc; a margin costs nothing.
    const termios = new Uint8Array(256)
    tcgetattr(slave, termios)
    cfmakeraw(termios)
    tcsetattr(slave, 0, termios)
    setTerminalSize(slave, usualSize)
    return { master, slave }
  } catch (error) {
    closeSync(master)
    throw error
  }
}
