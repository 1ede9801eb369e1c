import { readFileSync } from 'node:fs'
import { bpfAvailable } from '../../runtime/node/dataplane/bpf/compile.ts'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { loadLibc } from '../../runtime/node/os/system/libc.ts'
import { provided, type Requirement } from './test-with.ts'

/**
 * A program that tests need; see `testWith`. With PATCHBAY_REQUIRE=all (or its name in the list there) a missing program is a
 * failure instead.
 */
export function requireProgram(name: string): Requirement {
  return requireThing(name, findProgram(name) === undefined ? `${name} is not installed` : undefined)
}

/** The same for tests of expressions of tcpdump, which libpcap compiles; its name in the list is `libpcap`. */
export function requireLibpcap(): Requirement {
  return requireThing('libpcap', bpfAvailable() ? undefined : 'libpcap is not installed')
}

/** The same for tests that only root can run; its name in the list is `root`. */
export function requireRoot(): Requirement {
  return requireThing('root', process.getuid?.() === 0 ? undefined : 'this user is not root')
}

/** The same for tests that make network devices and namespaces; its name in the list is `devices`. */
export function requireDevices(): Requirement {
  const absent = ['ip', 'ping', 'python3'].filter((name) => findProgram(name) === undefined)
  if (absent.length > 0) return requireThing('devices', `${absent.join(', ')} cannot be found`)
  return requireThing('devices', mayMakeDevices() ? undefined : 'only root may make network devices')
}

/** The same for tests of the fast packet path, with what plays the guests there; its name in the list is `fast-path`. */
export function requireFastPath(): Requirement {
  if (findProgram('python3') === undefined) return requireThing('fast-path', 'python3 cannot be found')
  return requireThing('fast-path', obstacleOf(loadLibc))
}

function obstacleOf(run: () => unknown): string | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Also root may not in most containers: CAP_NET_ADMIN (12), CAP_NET_RAW (13) and CAP_SYS_ADMIN (21) are asked for. */
function mayMakeDevices(): boolean {
  try {
    const [, held = '0'] = /^CapEff:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    const wanted = (1n << 12n) | (1n << 13n) | (1n << 21n)
    return (BigInt(`0x${held}`) & wanted) === wanted
  } catch {
    return false
  }
}

/** The same for anything else; `missing` is why it cannot be had, if so. */
export function requireThing(name: string, missing: string | undefined): Requirement {
  const required = (process.env.PATCHBAY_REQUIRE ?? '').split(',')
  if (missing !== undefined && (required.includes('all') || required.includes(name)))
    throw new Error(`${missing}, and PATCHBAY_REQUIRE wants it`)
  return provided(missing === undefined, missing ?? '')
}
