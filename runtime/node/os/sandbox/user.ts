import { readFileSync, statSync } from 'node:fs'
import { chown, lchown, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { aclOfMode, allowing, permissionsOf, readAcl, writeAcl } from '../system/acl.ts'

/** The user of confined programs when the service is root. */
export interface EmulatorUser {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** The user of the setting: a name of /etc/passwd, or UID:GID. Undefined for an unknown name. */
export function findUser(setting: string, passwd = '/etc/passwd'): EmulatorUser | undefined {
  const numbers = /^(\d+):(\d+)$/.exec(setting)
  if (numbers !== null) return { name: setting, uid: Number(numbers[1]), gid: Number(numbers[2]) }
  for (const line of readFileSync(passwd, 'utf8').split('\n')) {
    const [name, , uid, gid] = line.split(':')
    if (name === setting) return { name, uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/** The group that may open a device; undefined when it is not there. */
export const groupOf = (device: string): number | undefined => statSync(device, { throwIfNoEntry: false })?.gid

/** Gives a directory with all that is in it to the user; no link is followed, and files with other names stay as they are. */
export async function giveTree(path: string, { uid, gid }: EmulatorUser): Promise<void> {
  const stats = await lstat(path)
  if (!stats.isDirectory()) {
    if (stats.nlink === 1 && (stats.uid !== uid || stats.gid !== gid)) await lchown(path, uid, gid)
    return
  }
  if (stats.uid !== uid || stats.gid !== gid) await chown(path, uid, gid)
  for (const name of await readdir(path)) await giveTree(join(path, name), { name, uid, gid })
}

export const permissions = { read: 4, write: 2, pass: 1 } as const

/** Lets the user read (or write) one file or directory of ours, by its access list; 409 when that is not possible. */
export async function letIn(path: string, user: EmulatorUser, wanted: number): Promise<void> {
  const { mode, uid, gid } = await lstat(path)
  const has = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode
  if ((has & wanted) === wanted) return
  try {
    const acl = readAcl(path) ?? aclOfMode(mode)
    if ((permissionsOf(acl, user.uid) & wanted) !== wanted) writeAcl(path, allowing(acl, user.uid, wanted))
  } catch (cause) {
    const command = `setfacl -m u:${user.name}:${wanted & permissions.write ? 'rw' : 'r'}X '${path}'`
    throw conflict(`${path}: emulators run as ${user.name} (emulator_user), who may not read it; ${command}`, { cause })
  }
}
