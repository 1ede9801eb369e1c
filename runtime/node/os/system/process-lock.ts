import type { Server } from 'node:net'
import { isOurs, listenAbstract } from './abstract-socket.ts'
import { type Libc, libcIfAny } from './libc.ts'
import { LockFile, LocksUnsupported } from './lock-file.ts'

/** A lock of a directory, by its two forms. */
export interface LockName {
  /** The lock file, in a directory that other users cannot write to. */
  readonly file: string
  /** The abstract UNIX socket (unix(7)) that was the lock up to 0.1.0. */
  readonly socket: string
}

export interface ProcessLock {
  /** Whether another user has the name of the socket, so that releases up to 0.1.0 do not see this lock. */
  readonly isSquatted: boolean
  release(): void
}

/**
 * Takes a lock of this host that the kernel frees with the process. Undefined when a process has it. It does not keep the process alive.
 * Throws when the system has no such lock, and the system's errors.
 *
 * The socket beside the file is for one release: a service or keeper of 0.1.0 must not share the directory. It is the only lock where files
 * cannot be locked: without FFI, and on some network file systems.
 */
export async function takeLock({ file, socket }: LockName): Promise<ProcessLock | undefined> {
  const libc = libcIfAny()
  const lock = libc && ifSupported(() => LockFile.acquire(libc, file) ?? 'held')
  if (lock === 'held') return undefined
  const server = await listenUnlessOurs(socket, libc)
  if (server === 'held') {
    lock?.leave()
    return undefined
  }
  if (server === undefined && lock === undefined)
    throw new Error(`${file} cannot be locked on this system, and another user has the name of its socket`)
  server?.unref()
  return {
    isSquatted: server === undefined,
    release() {
      server?.close()
      lock?.leave()
    },
  }
}

/** Undefined when another user has the name. */
async function listenUnlessOurs(socket: string, libc: Libc | undefined): Promise<Server | 'held' | undefined> {
  if (isOurs(socket, libc)) return 'held'
  const server = await listenAbstract(socket)
  // A process of this user may have taken the name since.
  return server === undefined && isOurs(socket, libc) ? 'held' : server
}

/** Whether a process has the lock, even if it does not answer. */
export function isLocked({ file, socket }: LockName): boolean {
  const libc = libcIfAny()
  const isHeld = libc && ifSupported(() => LockFile.isHeld(libc, file))
  return isHeld === true || isOurs(socket, libc)
}

function ifSupported<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch (error) {
    // On a full disk the service still starts, to delete things.
    const isFull = ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')
    if (error instanceof LocksUnsupported || isFull) return undefined
    throw error
  }
}
