import { accessSync, constants, existsSync } from 'node:fs'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { DoctorCheck } from '../../../../src/model/host.ts'
import { ok, preventing, warning } from '../../os/programs/checks.ts'
import { runProgram } from '../../os/programs/start.ts'
import { findPerl } from '../../os/sandbox/step.ts'
import { findProgram } from '../../os/system/find-program.ts'
import { insideCommand } from './holder.ts'
import { findIds, type IdRange } from './ids.ts'
import { profileFile } from './seccomp.ts'

const tun = '/dev/net/tun'
const probeMs = 10_000

/** What runs containers on this host. */
export interface Engine {
  readonly crun: string
  readonly skopeo: string
  readonly umoci: string
  readonly tun: string
  readonly ids: IdRange
}

/** Why a host cannot run containers, and what mends it. */
interface Obstacle {
  readonly reason: string
  readonly fix: string
}

/** The parts that containers need. 409 with the first one that is missing, and the command that mends it. */
export function requireEngine(): Engine {
  const found = findEngine()
  if ('reason' in found) throw conflict(`Containers cannot run here: ${found.reason}; ${found.fix}`)
  return found
}

function findEngine(): Engine | Obstacle {
  if (process.platform !== 'linux') return { reason: 'they need Linux', fix: 'use a compute with Linux' }
  if (findPerl() === undefined) return { reason: 'Perl is not installed', fix: 'sudo apt-get install perl-base' }
  const [crun, skopeo, umoci] = ['crun', 'skopeo', 'umoci'].map((name) => findProgram(name))
  for (const [name, path] of Object.entries({ crun, skopeo, umoci }))
    if (path === undefined) return { reason: `${name} is not installed`, fix: `sudo apt-get install ${name}` }
  if (!existsSync(profileFile))
    return { reason: `${profileFile} does not exist`, fix: 'sudo apt-get install golang-github-containers-common' }
  const found = findIds()
  if ('reason' in found) return found
  const device = tunObstacle()
  if (device !== undefined) return device
  return { crun: crun ?? '', skopeo: skopeo ?? '', umoci: umoci ?? '', tun, ids: found.ids }
}

function tunObstacle(): Obstacle | undefined {
  if (!existsSync(tun)) return { reason: `this host has no ${tun}`, fix: 'sudo modprobe tun' }
  try {
    accessSync(tun, constants.R_OK | constants.W_OK)
    return undefined
  } catch {
    return { reason: `${tun} may not be opened`, fix: `sudo chmod 0666 ${tun}` }
  }
}

/** Whether containers can run here: the parts are there, and the kernel makes the namespaces. */
export async function engineCheck(signal?: AbortSignal): Promise<DoctorCheck> {
  const name = 'Containers'
  const found = findEngine()
  const cannot = ({ reason, fix }: Obstacle) =>
    preventing(warning(name, `${reason}; for container nodes`, fix), 'container')
  if ('reason' in found) return cannot(found)
  const { command, args } = insideCommand(found.ids, [], ['/bin/true'])
  const { error, stderr } = await runProgram(command, args, { ms: probeMs, ...(signal !== undefined && { signal }) })
  if (error === null) return ok(name, `crun, as the ids from ${found.ids.firstUid} on`)
  const said = stderr.trim().split('\n').at(-1)?.slice(0, 200) || error.message
  return cannot({ reason: said, fix: fixOf(said) })
}

/** What lets the kernel make namespaces for an ordinary user (user_namespaces(7)). */
function fixOf(said: string): string {
  if (existsSync('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'))
    return 'sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'
  if (existsSync('/proc/sys/kernel/unprivileged_userns_clone'))
    return 'sudo sysctl -w kernel.unprivileged_userns_clone=1'
  return /No space left/.test(said)
    ? 'sudo sysctl -w user.max_user_namespaces=65536'
    : 'run the service where it may make user namespaces; inside another container it may not'
}
