import { realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { type AclEntry, aclOfMode, allowing, permissionsOf, readAcl, writeAcl } from '../../../os/system/acl.ts'
import { child, children, parseXml, textOf } from './xml.ts'

/** Execute permission on a directory. */
const passing = 1

/** The user of QEMU processes that libvirt starts. */
type GuestUser = { readonly uid: number; readonly gid: number }

/** The user of guests in the capabilities; undefined when guests run as the user of the daemon. */
export function guestUserIn(capabilities: string): GuestUser | undefined {
  const models = children(child(parseXml(capabilities), 'host'), 'secmodel')
  const owner = models.find((it) => textOf(child(it, 'model')) === 'dac')
  const [, uid, gid] = /^\+(\d+):\+(\d+)$/.exec(textOf(child(owner, 'baselabel'))) ?? []
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}

/**
 * Gives guests execute permission on a directory and its parents, by ACLs. 409 with a command when a home directory, or a directory
 * of another user, needs it.
 */
export async function allowPassage(directory: string, user: GuestUser): Promise<void> {
  if (user.uid === 0) return
  const closed: { path: string; acl: readonly AclEntry[] }[] = []
  // Both the path with its links and the real path are passed.
  for (const path of new Set([...waysTo(directory), ...waysTo(await realpath(directory))])) {
    const { mode, uid, gid } = await stat(path)
    const bit = uid === user.uid ? passing << 6 : gid === user.gid ? passing << 3 : passing
    if ((mode & bit) !== 0) continue
    const acl = aclAt(path, mode)
    if ((permissionsOf(acl, user.uid) & passing) === 0) closed.push({ path, acl })
  }
  const paths = closed.map(({ path }) => path)
  const owners = await Promise.all(paths.map(async (path) => (await stat(path)).uid))
  const foreign = paths.filter((path, index) => path === homedir() || owners[index] !== process.getuid?.())
  if (foreign.length > 0) throw refusal(foreign, user)
  try {
    for (const { path, acl } of closed) writeAcl(path, allowing(acl, user.uid, passing))
  } catch (cause) {
    throw refusal(paths, user, cause)
  }
}

function aclAt(path: string, mode: number): AclEntry[] {
  try {
    return readAcl(path) ?? aclOfMode(mode)
  } catch {
    // Without ACLs the mode counts.
    return aclOfMode(mode)
  }
}

function refusal(paths: readonly string[], { uid }: GuestUser, cause?: unknown): Error {
  const command = `sudo setfacl -m u:${uid}:x ${paths.map(quoted).join(' ')}`
  const user = `libvirt runs its guests as the user with the id ${uid}`
  return conflict(`${user}, which cannot traverse ${paths.join(', ')} to the disks of the clone: ${command}`, { cause })
}

/** The directory and its parents, from the root on. */
function waysTo(directory: string): string[] {
  const above = dirname(directory)
  return above === directory ? [directory] : [...waysTo(above), directory]
}

const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`
