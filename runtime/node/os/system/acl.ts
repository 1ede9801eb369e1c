import { createRequire } from 'node:module'

/** An entry of a POSIX access control list as the kernel keeps it. */
export interface AclEntry {
  readonly tag: number
  /** 4 read, 2 write, 1 execute or pass. */
  readonly permissions: number
  readonly id: number
}

/** acl(5), linux/posix_acl.h. */
const tags = { owner: 1, user: 2, owningGroup: 4, group: 8, mask: 16, others: 32 } as const
const attribute = 'system.posix_acl_access'
const version = 2
const noId = 0xffffffff
const headerBytes = 4
const entryBytes = 8
const maxBytes = 65536
/** errno of a file that has no list. */
const noData = 61

export function decodeAcl(bytes: Buffer): AclEntry[] {
  const entries: AclEntry[] = []
  for (let at = headerBytes; at + entryBytes <= bytes.length; at += entryBytes) {
    const tag = bytes.readUInt16LE(at)
    entries.push({ tag, permissions: bytes.readUInt16LE(at + 2), id: bytes.readUInt32LE(at + 4) })
  }
  return entries
}

export function encodeAcl(entries: readonly AclEntry[]): Buffer {
  const bytes = Buffer.alloc(headerBytes + entries.length * entryBytes)
  bytes.writeUInt32LE(version)
  entries.forEach(({ tag, permissions, id }, index) => {
    const at = headerBytes + index * entryBytes
    bytes.writeUInt16LE(tag, at)
    bytes.writeUInt16LE(permissions, at + 2)
    bytes.writeUInt32LE(id, at + 4)
  })
  return bytes
}

/** The list that is equivalent to the mode of a file. */
export const aclOfMode = (mode: number): AclEntry[] => [
  { tag: tags.owner, permissions: (mode >> 6) & 7, id: noId },
  { tag: tags.owningGroup, permissions: (mode >> 3) & 7, id: noId },
  { tag: tags.others, permissions: mode & 7, id: noId },
]

/** The permissions that the entry of a user grants, limited by the mask (acl(5)). */
export function permissionsOf(entries: readonly AclEntry[], uid: number): number {
  const mask = entries.find(({ tag }) => tag === tags.mask)?.permissions ?? 7
  return (entries.find(({ tag, id }) => tag === tags.user && id === uid)?.permissions ?? 0) & mask
}

/** Adds permissions of one user; the permissions of other users stay the same. */
export function allowing(entries: readonly AclEntry[], uid: number, permissions: number): AclEntry[] {
  const before = entries.find(({ tag }) => tag === tags.mask)
  const isMasked = (tag: number) => tag === tags.user || tag === tags.owningGroup || tag === tags.group
  // The new mask may be wider: the old one is applied to the entries that it limited.
  const held = entries
    .filter(({ tag }) => tag !== tags.mask)
    .map((it) => (isMasked(it.tag) ? { ...it, permissions: it.permissions & (before?.permissions ?? 7) } : it))
  const isUser = ({ tag, id }: AclEntry) => tag === tags.user && id === uid
  const had = held.find(isUser)?.permissions ?? 0
  const all = [...held.filter((it) => !isUser(it)), { tag: tags.user, permissions: had | permissions, id: uid }]
  const mask = all.filter(({ tag }) => isMasked(tag)).reduce((sum, it) => sum | it.permissions, 0)
  return [...all, { tag: tags.mask, permissions: mask, id: noId }].sort((a, b) => a.tag - b.tag || a.id - b.id)
}

/** The list of a file; undefined when the file has none. Throws when the list cannot be read. */
export function readAcl(path: string): AclEntry[] | undefined {
  const { getxattr, errno } = loadCalls()
  const bytes = Buffer.alloc(maxBytes)
  const length = Number(getxattr(path, attribute, bytes, maxBytes))
  if (length >= 0) return decodeAcl(bytes.subarray(0, length))
  if (errno() === noData) return undefined
  throw new Error(`the access control list of ${path} cannot be read (error ${errno()})`)
}

/** Replaces the list of a file. Throws when the file system has no such lists, or the file belongs to another user. */
export function writeAcl(path: string, entries: readonly AclEntry[]): void {
  const { setxattr, errno } = loadCalls()
  const bytes = encodeAcl(entries)
  if (setxattr(path, attribute, bytes, bytes.length, 0) === 0) return
  throw new Error(`the access control list of ${path} cannot be set (error ${errno()})`)
}

interface Calls {
  getxattr(path: string, name: string, value: Buffer, size: number): number | bigint
  setxattr(path: string, name: string, value: Buffer, size: number, flags: number): number
  errno(): number
}

let calls: Calls | undefined

function loadCalls(): Calls {
  if (calls !== undefined) return calls
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
  const library = koffi.load('libc.so.6')
  calls = {
    getxattr: library.func('int64_t getxattr(const char *, const char *, _Out_ uint8_t *, size_t)'),
    setxattr: library.func('int setxattr(const char *, const char *, const uint8_t *, size_t, int)'),
    errno: () => koffi.errno(),
  } as unknown as Calls
  return calls
}
