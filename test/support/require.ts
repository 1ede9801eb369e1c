import { readFileSync } from 'node:fs'
import { findProgram } from '../../runtime/node/system/find-program.ts'
import { loadLibc } from '../../runtime/node/system/libc.ts'

/**
 * Whether tests that need a program have to be skipped because it is not installed; the reason is printed. With
 * PATCHBAY_REQUIRE=all (or its name in the list there) a missing program is a failure instead.
 */
export function requireProgram(name: string): { readonly skip: boolean } {
  return requireThing(name, findProgram(name) === undefined ? `${name} is not installed` : undefined)
}

/** The same for tests that only root can run; its name in the list is `root`. */
export function requireRoot(): { readonly skip: boolean } {
  return requireThing('root', process.getuid?.() === 0 ? undefined : 'this user is not root')
}

/** The same for tests that make network devices and namespaces; its name in the list is `devices`. */
export function requireDevices(): { readonly skip: boolean } {
  const missing = ['ip', 'ping', 'python3'].filter((name) => findProgram(name) === undefined)
  if (missing.length > 0) return requireThing('devices', `${missing.join(', ')} cannot be found`)
  return requireThing('devices', mayMakeDevices() ? undefined : 'only root may make network devices')
}

/** The same for tests of the fast packet path, with what plays the guests there; its name in the list is `fast-path`. */
export function requireFastPath(): { readonly skip: boolean } {
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

/** The same for anything else; `obstacle` is why it cannot be had, if so. */
export function requireThing(name: string, obstacle: string | undefined): { readonly skip: boolean } {
  if (obstacle === undefined) return { skip: false }
  const required = (process.env.PATCHBAY_REQUIRE ?? '').split(',')
  if (required.includes('all') || required.includes(name)) throw new Error(`${obstacle}, and PATCHBAY_REQUIRE wants it`)
  process.stderr.write(`skipped: tests that need ${name}: ${obstacle}\n`)
  return { skip: true }
}
