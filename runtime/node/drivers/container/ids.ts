import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { findProgram } from '../../os/system/find-program.ts'

/** The ids of the host that the ids of all containers stand for, from root on (user_namespaces(7), subuid(5)). */
export interface IdRange {
  /** Who maps them: the service as root, or newuidmap(1) by /etc/subuid. */
  readonly by: 'root' | 'newuidmap'
  readonly firstUid: number
  readonly firstGid: number
  readonly count: number
}

/** The range, or the reason why there is none, and the command that makes one. */
export type FoundIds = { readonly ids: IdRange } | { readonly reason: string; readonly fix: string }

/** Ids of a container: what images use, and what adduser(8) gives. */
const idCount = 65_536
/** Root's range is above those of systemd-nspawn (systemd: UIDS-GIDS), and below 2^31. */
const firstOfRoot = 0x7000_0000

/** Finds the sub-ids of a user. The files are those of the host; tests have others. */
export function findIds({ uid, username } = userInfo(), files = { uid: '/etc/subuid', gid: '/etc/subgid' }): FoundIds {
  if (uid === 0) return { ids: { by: 'root', firstUid: firstOfRoot, firstGid: firstOfRoot, count: idCount } }
  if (findProgram('newuidmap') === undefined || findProgram('newgidmap') === undefined)
    return { reason: 'newuidmap is not installed', fix: 'sudo apt-get install uidmap' }
  const [firstUid, firstGid] = [files.uid, files.gid].map((file) => firstSubId(file, [username, String(uid)]))
  if (firstUid === undefined || firstGid === undefined) {
    const fix = `sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ${username}`
    return { reason: `${username} has no ${idCount} ids in /etc/subuid and /etc/subgid`, fix }
  }
  return { ids: { by: 'newuidmap', firstUid, firstGid, count: idCount } }
}

/** The first range of a user that is large enough (subuid(5)). */
function firstSubId(file: string, names: readonly string[]): number | undefined {
  try {
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const [name = '', first, count] = line.split(':')
      if (names.includes(name) && Number(count) >= idCount) return Number(first)
    }
  } catch {
    // Without the file nobody has sub-ids.
  }
  return undefined
}
