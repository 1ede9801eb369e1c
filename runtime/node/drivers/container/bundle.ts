import { createHash } from 'node:crypto'
import { hostnameOf } from '../../../../src/lib/text/host-name.ts'
import { baseCapabilities, type ContainerFile, hostsText, resolverText } from '../../../../src/model/kinds/container.ts'
import { shellWords } from '../../../../src/model/kinds/machine-options/shell-words.ts'
import { type CopiedFile, inside } from './holder.ts'
import type { ContainerProperties } from './properties.ts'
import type { SeccompProfile } from './seccomp.ts'

/** How an image wants to be run, as far as we follow it. */
export interface ImageRun {
  readonly args: readonly string[]
  readonly entrypoint: readonly string[]
  readonly env: readonly string[]
  readonly cwd: string
  readonly user: { readonly uid: number; readonly gid: number; readonly additionalGids: readonly number[] }
}

/** Files of the kernel that say something about the host, or change it; as the OCI runtimes have them by default. */
const maskedPaths = [
  ...['/proc/acpi', '/proc/asound', '/proc/kcore', '/proc/keys', '/proc/latency_stats', '/proc/timer_list'],
  ...['/proc/timer_stats', '/proc/sched_debug', '/proc/scsi', '/sys/firmware', '/sys/fs/selinux', '/sys/dev/block'],
]
/** /proc/sys stays writable: the kernel lets a network namespace change its own part alone. */
const readonlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sysrq-trigger']

const searchPath = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export interface Bundle {
  /** Text of config.json of the OCI runtime specification. */
  readonly config: string
  /** Contents of the files beside it, by their names. */
  readonly contents: ReadonlyMap<string, string>
  readonly files: readonly CopiedFile[]
}

/** The bundle of a container that its holder has crun run. */
export function bundleOf(
  { name, properties }: { readonly name: string; readonly properties: ContainerProperties },
  image: ImageRun,
  seccomp: (capabilities: readonly string[]) => SeccompProfile,
): Bundle {
  const hostname = hostnameOf(name)
  const { command, entrypoint, environment, workdir, shm, resolver } = properties
  const user = userOf(properties.user) ?? image.user
  const capabilities = [...new Set([...baseCapabilities, ...properties.capabilities])].map((it) => `CAP_${it}`)
  const own = entrypoint.trim() === '' ? image.entrypoint : shellWords(entrypoint, 'entrypoint')
  const rest = command.trim() === '' ? (entrypoint.trim() === '' ? image.args : []) : shellWords(command, 'command')
  const all = [
    { path: '/etc/hostname', text: `${hostname}\n`, mode: '0644' },
    { path: '/etc/hosts', text: hostsText(hostname, linesOf(properties.hosts)), mode: '0644' },
    ...(resolver === '' ? [] : [{ path: '/etc/resolv.conf', text: resolverText(resolver), mode: '0644' }]),
    ...properties.files,
  ]
  // A file of the node takes the place of one of ours.
  const files = all.filter(({ path }, index) => !all.slice(index + 1).some((later) => later.path === path))
  const copied = files.map((file, index) => {
    const { text, mode = '0644' } = file
    return { from: `file-${index}`, to: sumOf(file), mode, text }
  })
  const mount = (destination: string, type: string, source: string, ...options: string[]) => ({
    ...{ destination, type, source },
    options,
  })
  const config = {
    ociVersion: '1.0.2',
    hostname,
    root: { path: inside.rootfs, readonly: false },
    process: {
      terminal: true,
      consoleSize: { width: 80, height: 24 },
      user,
      args: [...own, ...rest],
      cwd: workdir || image.cwd,
      env: variables([searchPath, 'TERM=xterm', `HOSTNAME=${hostname}`, ...image.env, ...linesOf(environment)]),
      noNewPrivileges: true,
      // Where the host has no more memory, the kernel is to end it and not the service.
      oomScoreAdj: 1000,
      // An ordinary user in the container gains them no more than on any system.
      capabilities: {
        bounding: capabilities,
        ...(user.uid === 0 && { effective: capabilities, permitted: capabilities }),
      },
    },
    mounts: [
      mount('/proc', 'proc', 'proc', 'nosuid', 'noexec', 'nodev'),
      mount('/dev', 'tmpfs', 'tmpfs', 'nosuid', 'strictatime', 'mode=755', 'size=65536k'),
      mount('/dev/pts', 'devpts', 'devpts', 'nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'),
      mount('/dev/shm', 'tmpfs', 'shm', 'nosuid', 'noexec', 'nodev', 'mode=1777', `size=${shm}m`),
      mount('/dev/mqueue', 'mqueue', 'mqueue', 'nosuid', 'noexec', 'nodev'),
      mount('/sys', 'sysfs', 'sysfs', 'nosuid', 'noexec', 'nodev', 'ro'),
      mount('/run', 'tmpfs', 'tmpfs', 'nosuid', 'nodev', 'mode=755', 'size=65536k'),
      ...copied.map(({ to }, index) =>
        mount(files[index]?.path ?? '', 'bind', `${inside.files}/${to}`, 'bind', 'rw', 'nosuid', 'nodev'),
      ),
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
      ...{ maskedPaths, readonlyPaths },
      seccomp: seccomp(capabilities),
    },
  }
  return {
    config: JSON.stringify(config),
    contents: new Map(copied.map(({ from, text }) => [from, text])),
    files: copied.map(({ from, to, mode }) => ({ from, to, mode })),
  }
}

/** The user of a setting, and its group, which is that of root where none is named (as Docker has it). */
function userOf(text: string): ImageRun['user'] | undefined {
  if (text === '') return undefined
  const [uid = 0, gid = 0] = text.split(':').map(Number)
  return { uid, gid, additionalGids: [] }
}

/** The name in the layer of a file of the settings: another text, or mode, is another file. */
const sumOf = ({ path, text, mode = '0644' }: ContainerFile): string =>
  createHash('sha256').update(`${path}\0${mode}\0${text}`).digest('hex').slice(0, 32)

/** The paths of files of the settings, and their names in the layer. Those that lead through `..` are in no image. */
export const settingFiles = (files: readonly ContainerFile[]): (readonly [path: string, name: string])[] =>
  files.filter(({ path }) => !/\/\.{0,2}\//.test(path)).map((file) => [file.path, sumOf(file)] as const)

/** The lines of a setting that has one thing a line. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line.trim() !== '')

/** `NAME=value` lines, as pairs. */
export const pairsOf = (text: string): [string, string][] => linesOf(text).map((line) => splitAt(line, '='))

const splitAt = (line: string, sign: string): [string, string] => {
  const at = line.indexOf(sign)
  return [line.slice(0, at), line.slice(at + 1)]
}

/** `NAME=value` lines, of which the last one of a name counts. */
const variables = (lines: readonly string[]): string[] =>
  Object.entries(Object.fromEntries(lines.map((line) => splitAt(line, '=')))).map(([name, value]) => `${name}=${value}`)
