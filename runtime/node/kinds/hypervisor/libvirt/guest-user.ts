import { realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { conflict } from '../../../../../src/errors/api-error.ts'
import { type AclEntry, aclOfMode, allowing, permissionsOf, readAcl, writeAcl } from '../../../system/acl.ts'
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
  const closedPlaces: { place: string; acl: readonly AclEntry[] }[] = []
  // Both the path with its links and the real path are passed.
  for (const place of new Set([...waysTo(directory), ...waysTo(await realpath(directory))])) {
    const { mode, uid, gid } = await stat(place)
    const bit = uid === user.uid ? passing << 6 : gid === user.gid ? passing << 3 : passing
    if ((mode & bit) !== 0) continue
    const acl = aclAt(place, mode)
    if ((permissionsOf(acl, user.uid) & passing) === 0) closedPlaces.push({ place, acl })
  }
  const places = closedPlaces.map(({ place }) => place)
  const owners = await Promise.all(places.map(async (place) => (await stat(place)).uid))
  const foreign = places.filter((place, index) => place === homedir() || owners[index] !== process.getuid?.())
  if (foreign.length > 0) throw refusal(foreign, user)
  try {
    for (const { place, acl } of closedPlaces) writeAcl(place, allowing(acl, user.uid, passing))
  } catch (cause) {
    throw refusal(places, user, cause)
  }
}

function aclAt(place: string, mode: number): AclEntry[] {
  try {
    return readAcl(place) ?? aclOfMode(mode)
  } catch {
    // Without ACLs the mode counts.
    return aclOfMode(mode)
  }
}

function refusal(places: readonly string[], { uid }: GuestUser, cause?: unknown): Error {
  const command = `sudo setfacl -m u:${uid}:x ${places.map(quoted).join(' ')}`
  const user = `libvirt runs its guests as the user with the number ${uid}`
  return conflict(`${user}, which may not pass ${places.join(', ')} to the disks of the clone: ${command}`, { cause })
}

/** The directory and its parents, from the root on. */
function waysTo(directory: string): string[] {
  const above = dirname(directory)
  return above === directory ? [directory] : [...waysTo(above), directory]
}

const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`
