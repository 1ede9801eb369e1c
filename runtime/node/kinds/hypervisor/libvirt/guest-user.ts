import { realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { conflict } from '../../../../../src/errors/api-error.ts'
import { type AclEntry, aclOfMode, allowing, permissionsOf, readAcl, writeAcl } from '../../../system/acl.ts'
import { child, children, parseXml, textOf } from './xml.ts'

/** Permission to pass a directory. */
const passing = 1

/** Who the guests of a libvirt run as. */
export interface GuestUser {
  readonly uid: number
  readonly gid: number
}

/** The user that libvirt gives to guests; undefined when they run as the daemon does. */
export function guestUserIn(capabilities: string): GuestUser | undefined {
  const host = child(parseXml(capabilities), 'host')
  const models = host === undefined ? [] : children(host, 'secmodel')
  const owner = models.find((it) => textOf(child(it, 'model')) === 'dac')
  const label = owner === undefined ? '' : textOf(child(owner, 'baselabel'))
  const [, uid, gid] = /^\+(\d+):\+(\d+)$/.exec(label) ?? []
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}

/**
 * Lets guests through to a directory of ours, which nobody else may enter: they may pass each one on the way, not look into it.
 * A home directory, and what is not ours, is for the user to open: 409 with the command.
 */
export async function letThrough(directory: string, user: GuestUser): Promise<void> {
  if (user.uid === 0) return
  const shut: { place: string; acl: readonly AclEntry[] }[] = []
  // A link is passed on both sides.
  for (const place of new Set([...waysTo(directory), ...waysTo(await realpath(directory))])) {
    const { mode, uid, gid } = await stat(place)
    const bit = uid === user.uid ? passing << 6 : gid === user.gid ? passing << 3 : passing
    if ((mode & bit) !== 0) continue
    const acl = aclAt(place, mode)
    if ((permissionsOf(acl, user.uid) & passing) === 0) shut.push({ place, acl })
  }
  const places = shut.map(({ place }) => place)
  const owners = await Promise.all(places.map(async (place) => (await stat(place)).uid))
  const foreign = places.filter((place, index) => place === homedir() || owners[index] !== process.getuid?.())
  if (foreign.length > 0) throw closed(foreign, user)
  try {
    for (const { place, acl } of shut) writeAcl(place, allowing(acl, user.uid, passing))
  } catch (cause) {
    throw closed(places, user, cause)
  }
}

function aclAt(place: string, mode: number): AclEntry[] {
  try {
    return readAcl(place) ?? aclOfMode(mode)
  } catch {
    // Where there are none, or they cannot be read, the mode is all there is.
    return aclOfMode(mode)
  }
}

function closed(places: readonly string[], { uid }: GuestUser, cause?: unknown): Error {
  const command = `sudo setfacl -m u:${uid}:x ${places.map(quoted).join(' ')}`
  const who = `libvirt runs its guests as the user with the number ${uid}`
  return conflict(`${who}, who may not pass ${places.join(', ')} to the disks of the clone: ${command}`, { cause })
}

/** From the root on. */
function waysTo(directory: string): string[] {
  const above = dirname(directory)
  return above === directory ? [directory] : [...waysTo(above), directory]
}

const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`
