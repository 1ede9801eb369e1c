import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { requireDevices, requireThing } from './require.ts'
import type { Requirement } from './test-with.ts'

const run = promisify(execFile)

/**
 * The first process: it mounts a copy of this machine that takes all changes, makes it the root, and waits. With its standard input it
 * ends, and the kernel then ends all others. bash collects the processes that lose their parents. A change of the root by chroot would forbid user namespaces (user_namespaces(7)).
 */
const init = `
set -e
read -r pid rest </proc/self/stat
mount -t tmpfs tmpfs "$1"
mkdir "$1/changes" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" "$1/root"
mkdir -p "$1/root/packages"
mount --bind "$2" "$1/root/packages"
cd "$1/root"
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=0755 tmpfs run
mkdir -p run/host
pivot_root . run/host
umount -l /run/host
echo "$pid"
while read -r line; do :; done
`

/** What such machines need; the name in the list is `debian`. */
export function requireDebian(): Requirement {
  const absent = ['dpkg', 'dpkg-deb', 'lintian', 'systemd-analyze', 'nsenter', 'setpriv', 'pivot_root', 'strip'].filter(
    (name) => findProgram(name) === undefined,
  )
  if (absent.length > 0) return requireThing('debian', `${absent.join(', ')} cannot be found`)
  return requireThing('debian', requireDevices().missing)
}

/**
 * This machine once more, with its files, users and network, and with processes of its own: what is changed there is gone with the
 * test. For packages that are installed.
 */
export class DebianMachine {
  readonly #pid: string

  private constructor(pid: string) {
    this.#pid = pid
  }

  /** `packages`: a directory that the machine has as /packages. */
  static async create(packages: string): Promise<DebianMachine> {
    const place = await mkdtemp(join(tmpdir(), 'patchbay-debian-'))
    const namespaces = ['--mount', '--pid', '--ipc', '--fork', '--kill-child', '--propagation', 'private']
    const child = spawn('unshare', [...namespaces, 'bash', '-c', init, 'init', place, packages], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const gone = once(child, 'exit')
    onTestFinished(async () => {
      child.stdin.end()
      await gone
      await rm(place, { recursive: true, force: true })
    })
    for await (const line of createInterface({ input: child.stdout })) return new DebianMachine(line)
    throw new Error('the machine ended before it was ready')
  }

  /** The output of a command that root runs there; rejects when it fails. */
  async run(...command: readonly string[]): Promise<string> {
    const [program = '', ...args] = this.#entering(command)
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }
    const { stdout, stderr } = await run(program, args, { env })
    return stdout + stderr
  }

  /** Starts a command there; its standard output is read by the caller. */
  start(...command: readonly string[]): ChildProcess & { readonly stdout: Readable } {
    const [program = '', ...args] = this.#entering(command)
    return spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  }

  #entering(command: readonly string[]): string[] {
    return ['nsenter', '--target', this.#pid, '--mount', '--pid', '--ipc', '--', ...command]
  }
}
