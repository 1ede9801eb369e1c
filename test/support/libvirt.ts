import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { Reaped } from './reaped.ts'
import { requireThing } from './require.ts'
import type { Requirement } from './test-with.ts'

const run = promisify(execFile)
const sbin = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter)
const isRoot = process.getuid?.() === 0
const asNobody = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups']

/** What tests of libvirt need; its name in the list of PATCHBAY_REQUIRE is `libvirt`. */
export function requireLibvirt(): Requirement {
  const wanted = [
    'libvirtd',
    'virsh',
    'python3',
    'qemu-system-x86_64',
    'qemu-img',
    ...(isRoot ? ['unshare', 'mount'] : []),
  ]
  const missing = wanted.filter((name) => findProgram(name, sbin) === undefined)
  if (missing.length > 0) return requireThing('libvirt', `${missing.join(', ')} cannot be found`)
  return requireThing('libvirt', isRoot && !mayMount() ? 'root may not mount here' : undefined)
}

/** CAP_SYS_ADMIN (21). */
function mayMount(): boolean {
  const [, held = '0'] = /^CapEff:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return ((BigInt(`0x${held}`) >> 21n) & 1n) === 1n
}

/**
 * A libvirt of the tests' own: that of the system, which only root can run and which sees private directories in the place of the
 * system's, or that of a session; for root it is that of another user.
 */
export class TestLibvirt {
  readonly directory: string
  readonly #isSystem: boolean
  readonly uri: string
  #daemon: Reaped | undefined

  private constructor(directory: string, isSystem: boolean) {
    this.directory = directory
    this.#isSystem = isSystem
    this.uri = `qemu:///${isSystem ? 'system' : 'session'}?socket=${this.socket}`
  }

  static async start(isSystem = isRoot): Promise<TestLibvirt> {
    const directory = await mkdtemp(join(tmpdir(), 'patchbay-libvirt-'))
    // Guests of the system have a user of their own.
    await chmod(directory, 0o755)
    const libvirt = new TestLibvirt(directory, isSystem)
    for (const name of ['etc', 'lib', 'run', 'cache', 'log', 'socket', 'config/libvirt']) {
      await mkdir(join(directory, name), { recursive: true })
    }
    const daemon = [`unix_sock_dir = "${join(directory, 'socket')}"`, 'auth_unix_rw = "none"']
    await writeFile(
      join(directory, 'libvirtd.conf'),
      `${daemon.join('\n')}\nlog_outputs = "3:file:${directory}/log/libvirtd.log"\n`,
    )
    const qemu = 'stdio_handler = "file"\nnamespaces = []\ncgroup_controllers = []\n'
    await writeFile(join(directory, 'etc/qemu.conf'), qemu)
    await writeFile(join(directory, 'config/libvirt/qemu.conf'), qemu)
    await writeFile(join(directory, 'no-kvm'), '')
    if (isRoot && !isSystem) await run('chown', ['-R', 'nobody', directory])
    await libvirt.restart()
    return libvirt
  }

  get socket(): string {
    return join(this.directory, 'socket/libvirt-sock')
  }

  /** Starts the daemon again, when it was killed. */
  async restart(): Promise<void> {
    const { directory } = this
    const program = ['libvirtd', '-f', join(directory, 'libvirtd.conf'), '-p', join(directory, 'run/libvirtd.pid')]
    const launcher = this.#isSystem ? ['unshare', '--mount', 'sh', '-c', privately(directory)] : isRoot ? asNobody : []
    const home = {
      HOME: directory,
      XDG_RUNTIME_DIR: join(directory, 'run'),
      XDG_CONFIG_HOME: join(directory, 'config'),
      XDG_CACHE_HOME: join(directory, 'cache'),
    }
    const env = { PATH: sbin, ...(!this.#isSystem && home) }
    // It waits until a guest that it ended is nobody's child any more, and asks five times a second.
    const daemon = await Reaped.start([...launcher, ...program], env)
    this.#daemon = daemon
    // No event tells of the socket.
    while (!(await answers(this.socket))) {
      if (daemon.hasEnded) throw new Error('libvirtd ended')
      await pause(10)
    }
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await this.#daemon?.kill(signal)
  }

  /** What the user's own tool says. */
  async virsh(...args: readonly string[]): Promise<string> {
    return (await run('virsh', ['-q', '-c', this.uri, ...args])).stdout
  }

  /** Has a VM defined, as its user would. */
  async define(xml: string): Promise<void> {
    const file = join(this.directory, 'definition.xml')
    await writeFile(file, xml)
    await this.virsh('define', file)
  }

  /** Ends the daemon and every guest it has. */
  async close(): Promise<void> {
    await this.kill('SIGTERM')
    for (const pid of guestsIn(join(this.directory, this.#isSystem ? 'run/qemu' : 'run/libvirt/qemu/run'))) end(pid)
    await rm(this.directory, { recursive: true, force: true })
  }
}

/** A shell script that runs its arguments where libvirt's directories are the private ones, and KVM cannot be used. */
function privately(directory: string): string {
  const places = {
    etc: '/etc/libvirt',
    lib: '/var/lib/libvirt',
    run: '/run/libvirt',
    cache: '/var/cache/libvirt',
    log: '/var/log/libvirt',
  }
  const binds = Object.entries(places).map(
    ([name, place]) => `mkdir -p ${place} && mount --bind ${directory}/${name} ${place}`,
  )
  // Where KVM is there and starts nothing, libvirt looks at every QEMU anew at every start.
  const noKvm = `[ ! -e /dev/kvm ] || { mount --bind ${directory}/no-kvm /dev/kvm && mount -o remount,bind,ro /dev/kvm; }`
  return [noKvm, ...binds, 'exec "$0" "$@"'].join(' && ')
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const attempt = createConnection(socket)
    attempt.once('error', () => resolve(false))
    attempt.once('connect', () => {
      attempt.destroy()
      resolve(true)
    })
  })
}

function guestsIn(directory: string): number[] {
  try {
    const files = readdirSync(directory).filter((name) => name.endsWith('.pid') && name !== 'driver.pid')
    return files.map((name) => Number(readFileSync(join(directory, name), 'utf8')))
  } catch {
    return []
  }
}

function end(pid: number): void {
  try {
    // The number may be somebody else's by now.
    if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('guest=')) process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
