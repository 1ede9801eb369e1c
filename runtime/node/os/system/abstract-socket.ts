import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { type Libc, linux } from './libc.ts'

/** Bytes of `sun_path` (unix(7)), and of the family before it. */
const nameLength = 108
const familyLength = 2

/** struct sockaddr_un; struct ucred { pid, uid, gid }; the length of the latter. Kept for all calls, so that their memory stays. */
const address = Buffer.from(new ArrayBuffer(familyLength + nameLength))
const credentials = new DataView(new ArrayBuffer(12))
const length = new DataView(new ArrayBuffer(4))

/** Node 20 (libuv 1.46) fills the names of abstract sockets with NUL, later releases do not: a filled name is the same for all. */
const fullName = (name: string): string => `\0${name}`.padEnd(nameLength, '\0')

/** The name that 0.1.0 gives it on Node 22 and later. */
const shortName = (name: string): string => `\0${name}`

/** Listens at the name; undefined when a process has it. */
export async function listenAbstract(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy())
  try {
    const listening = once(server, 'listening')
    server.listen(fullName(name))
    await listening
    return server
  } catch {
    return undefined
  }
}

/**
 * Whether a process of this user has the name, even if it does not answer. Every user of the host can take any name: processes of others do not
 * count.
 */
export function isOurs(name: string, libc: Libc | undefined): boolean {
  const own = process.geteuid?.()
  if (libc !== undefined && [fullName(name), shortName(name)].some((path) => listenerOf(libc, path) === own))
    return true
  // Without FFI; and a socket that does not listen, or whose accept queue is full, does not tell its owner.
  const sockets = socketsOf(name)
  return sockets.size > 0 && processesOf(own).some((pid) => hasOneOf(pid, sockets))
}

/** The user whose process listens at the path (SO_PEERCRED, unix(7)); undefined when no connection can be made now. */
function listenerOf(libc: Libc, path: string): number | undefined {
  const fd = libc.socket(linux.AF_UNIX, linux.SOCK_STREAM | linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC, 0)
  if (fd < 0) return undefined
  try {
    address.writeUInt16LE(linux.AF_UNIX)
    const end = familyLength + address.write(path, familyLength)
    if (libc.connect(fd, libc.addressOf(address), end) < 0) return undefined
    length.setUint32(0, credentials.byteLength, true)
    const [to, size] = [credentials, length].map(({ buffer }) => libc.addressOf(new Uint8Array(buffer)))
    if (libc.getsockopt(fd, linux.SOL_SOCKET, linux.SO_PEERCRED, to as number, size as number) < 0) return undefined
    return credentials.getUint32(4, true)
  } finally {
    libc.close(fd)
  }
}

/** The links in /proc/PID/fd of the sockets of the name. /proc/net/unix shows each NUL of a name as @ (proc_net_unix(5)). */
function socketsOf(name: string): Set<string> {
  const sockets = new Set<string>()
  for (const line of textOf('/proc/net/unix').split('\n')) {
    const [, , , , , , inode, path] = line.trim().split(/\s+/)
    if (path?.replace(/@+$/, '') === `@${name}`) sockets.add(`socket:[${inode}]`)
  }
  return sockets
}

const processesOf = (user: number | undefined): string[] =>
  namesIn('/proc').filter(
    (name) => /^\d+$/.test(name) && statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid === user,
  )

const hasOneOf = (pid: string, sockets: ReadonlySet<string>): boolean =>
  namesIn(`/proc/${pid}/fd`).some((fd) => sockets.has(linkOf(`/proc/${pid}/fd/${fd}`)))

/** What cannot be read is empty: processes end meanwhile, and those with more privileges are hidden. */
const orEmpty = <T>(read: () => T, empty: T): T => {
  try {
    return read()
  } catch {
    return empty
  }
}
const textOf = (path: string): string => orEmpty(() => readFileSync(path, 'utf8'), '')
const namesIn = (path: string): string[] => orEmpty(() => readdirSync(path), [])
const linkOf = (path: string): string => orEmpty(() => readlinkSync(path), '')
