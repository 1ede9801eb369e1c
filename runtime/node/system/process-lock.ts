import { once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'

/** Bytes of `sun_path` (unix(7)). */
const fullLength = 108

/**
 * Takes a lock of this host that the kernel frees with the process: an abstract UNIX socket (unix(7)). Undefined when a process has it.
 * The lock keeps the process alive unless the caller calls `unref`.
 */
export async function takeLock(name: string): Promise<Server | undefined> {
  if (await answers(shortName(name))) return undefined
  const holder = createServer((socket) => socket.destroy())
  try {
    const listening = once(holder, 'listening')
    holder.listen(fullName(name))
    await listening
    return holder
  } catch {
    return undefined
  }
}

/** Whether a process has the lock, even if it does not answer. */
export async function isLocked(name: string): Promise<boolean> {
  return (await answers(fullName(name))) || (await answers(shortName(name)))
}

/** Node 20 (libuv 1.46) fills the names of abstract sockets with NUL, later releases do not: a filled name is the same for all. */
const fullName = (name: string): string => `\0${name}`.padEnd(fullLength, '\0')

/** The name that 0.1.0 gives it on Node 22 and later. */
const shortName = (name: string): string => `\0${name}`

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ path })
    const settle = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', () => settle(true))
    // A full accept queue means that the holder hangs.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => settle(code === 'EAGAIN'))
  })
