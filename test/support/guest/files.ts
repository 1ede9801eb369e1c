import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../../../runtime/node/os/system/find-program.ts'
import { requireProgram, requireThing } from '../require.ts'
import type { Requirement } from '../test-with.ts'
import { cpio, type Entry } from './cpio.ts'
import { findKernel } from './kernel.ts'
import { aliasTable, dependencyTable, type Module, modulesIn } from './modules.ts'

const cache = join(import.meta.dirname, '../../../node_modules/.cache/patchbay-guest')
/** Part of the name of what is cached; to be counted up when these files make something else of the same sources. */
const recipe = 1

/** What the guest can have: adapters, disks and their file system, the power button. */
const modules: readonly string[] = [
  ...['virtio_pci', 'virtio_net', 'e1000', 'e1000e', 'vmxnet3'],
  ...['virtio_blk', 'virtio_scsi', 'ata_piix', 'ahci', 'nvme', 'sd_mod', 'sr_mod'],
  ...['ext4', 'crc32c_generic', 'button', 'evdev'],
]

/** MiB that a guest runs well with; with 80 it does not start. */
export const guestRam = 128

/** The kernel command line of a guest; the words are for its /init: `pb.host=a pb.ip=10.0.0.1/24 pb.ip1=10.0.1.1/24`. */
export const guestCommandLine = (words = ''): string =>
  // Self-tests of ciphers are a third of a second. A panic is a restart, or with -no-reboot the end of the emulator. On a busy host the
  // timer of an emulated machine is late: the kernel would take it for broken, and panic (`no_timer_check`: kernel-parameters.txt of Linux).
  `console=ttyS0 quiet no_timer_check panic=-1 cryptomgr.notests ${words}`.trim()

export interface GuestFiles {
  readonly kernel: string
  readonly initrd: string
}

let made: Promise<GuestFiles> | undefined

/** A Linux that is made once, of Debian's packages, and kept for all test runs. */
export function guestFiles(): Promise<GuestFiles> {
  made ??= make()
  return made
}

/**
 * What tests need that boot a guest; its name in the list of PATCHBAY_REQUIRE is `guest`. The first time it downloads the kernel,
 * so await it at the top of the file, where no time-out of a test or hook runs.
 */
export async function requireGuest(): Promise<Requirement> {
  const programs = ['qemu-system-x86_64', 'qemu-img', 'busybox'].map(requireProgram)
  const absent = programs.find(({ skip }) => skip)
  if (absent !== undefined) return absent
  try {
    await guestFiles()
    return requireThing('guest', undefined)
  } catch (cause) {
    return requireThing('guest', (cause as Error).message)
  }
}

async function make(): Promise<GuestFiles> {
  const busybox = await staticBusybox()
  const init = await readFile(join(import.meta.dirname, 'init.sh'))
  const hash = createHash('sha256').update(`${recipe} ${modules}`).update(init).update(busybox.content).digest('hex')
  const directory = join(cache, hash.slice(0, 16))
  const files = { kernel: join(directory, 'vmlinux'), initrd: join(directory, 'initrd.img') }
  if (await isThere(directory)) return files
  await mkdir(cache, { recursive: true })
  // Several test workers ask at once, and one download is enough.
  const release = await lock(join(cache, 'lock'))
  const work = await mkdtemp(join(cache, 'making-'))
  try {
    if (!(await isThere(directory))) await rename(await filled(work, busybox, init), directory)
    return files
  } finally {
    await rm(work, { recursive: true, force: true })
    release()
  }
}

/** A directory in this one, with both files. */
async function filled(work: string, busybox: Busybox, init: Buffer): Promise<string> {
  const whole = join(work, 'whole')
  await mkdir(whole)
  const kernel = await findKernel(work)
  await writeFile(join(whole, 'vmlinux'), kernel.image)
  const found = await modulesIn(kernel.modules, modules)
  await writeFile(join(whole, 'initrd.img'), cpio([...programs(init, busybox), ...drivers(kernel.release, found)]))
  return whole
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

interface Busybox {
  readonly content: Buffer
  /** Of the programs that it is. */
  readonly names: readonly string[]
}

/** The usual package of it needs libraries. */
async function staticBusybox(): Promise<Busybox> {
  const path = findProgram('busybox') ?? '/bin/busybox'
  const content = await readFile(path)
  if (content.includes('/ld-linux')) throw new Error('busybox is not static: apt-get install busybox-static')
  const { stdout } = await promisify(execFile)(path, ['--list'])
  return { content, names: stdout.split('\n').filter((name) => !['', 'busybox'].includes(name)) }
}

/** Held until the function that comes back is called, or this process has ended: the holder ends with its input. */
async function lock(file: string): Promise<() => void> {
  const holder = spawn('flock', [file, 'cat'], { stdio: ['pipe', 'pipe', 'ignore'] })
  const failed = new Promise<never>((_, reject) => {
    holder.once('error', reject)
    holder.once('exit', () => reject(new Error('flock ended')))
  })
  failed.catch(() => {})
  holder.stdin.write('held')
  await Promise.race([once(holder.stdout, 'data'), failed])
  return () => holder.stdin.end()
}

function programs(init: Buffer, busybox: Busybox): Entry[] {
  const directories = ['dev', 'proc', 'sys', 'tmp', 'mnt', 'root', 'bin', 'sbin', 'etc', 'etc/acpi', 'etc/acpi/PWRF']
  return [
    ...directories.map(directory),
    // The kernel wants it before anything of ours runs.
    { path: 'dev/console', type: 'character', major: 5, minor: 1 },
    file('init', init, 0o755),
    file('bin/busybox', busybox.content, 0o755),
    ...busybox.names.map((name): Entry => ({ path: `bin/${name}`, type: 'link', target: 'busybox' })),
    // Where the kernel looks for the driver of a file system that is mounted.
    { path: 'sbin/modprobe', type: 'link', target: '/bin/busybox' },
    file('etc/acpi/PWRF/00000080', '#!/bin/busybox sh\nexec /bin/busybox poweroff -f\n', 0o755),
    file('etc/passwd', 'root::0:0:root:/root:/bin/sh\n'),
  ]
}

function drivers(release: string, modules: readonly Module[]): Entry[] {
  const home = `lib/modules/${release}`
  return [
    ...['lib', 'lib/modules', home].map(directory),
    ...modules.map(({ name, content }) => file(`${home}/${name}.ko`, content)),
    file(`${home}/modules.dep`, dependencyTable(modules)),
    file(`${home}/modules.alias`, aliasTable(modules)),
  ]
}

const directory = (path: string): Entry => ({ path, type: 'directory' })

const file = (path: string, content: string | Uint8Array, mode = 0o644): Entry => ({
  ...{ path, type: 'file', mode },
  content: typeof content === 'string' ? Buffer.from(content) : content,
})
