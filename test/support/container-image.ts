import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findLimiter } from '../../runtime/node/drivers/container/control-groups.ts'
import { engineCheck } from '../../runtime/node/drivers/container/engine.ts'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { requireThing } from './require.ts'
import type { Requirement } from './test-with.ts'

/** For tests that run containers; its name in the list is `containers`. */
export async function requireContainers(): Promise<Requirement> {
  if (!existsSync('/bin/busybox')) return requireThing('containers', 'busybox cannot be found')
  if (findProgram('tar') === undefined) return requireThing('containers', 'tar cannot be found')
  const { status, found } = await engineCheck()
  return requireThing('containers', status === 'ok' ? undefined : found)
}

/** The same for tests that look into the control groups of containers; its name in the list is `control-groups`. */
export function requireControlGroups(): Requirement {
  const found = findLimiter()
  if ('reason' in found) return requireThing('control-groups', found.reason)
  return requireThing('control-groups', found.by === 'root' ? undefined : 'systemd makes them for this user')
}

/** What an image says of itself (OCI image specification). */
export interface ImageSays {
  readonly Cmd?: readonly string[]
  readonly Entrypoint?: readonly string[]
  readonly Env?: readonly string[]
  readonly User?: string
  readonly WorkingDir?: string
  readonly StopSignal?: string
  readonly Healthcheck?: { readonly Test: readonly string[]; readonly Timeout?: number }
}

/** Programs of busybox that the images of tests have. */
const applets = [
  ...[
    'sh',
    'ash',
    'cat',
    'chmod',
    'chown',
    'chroot',
    'cp',
    'dd',
    'df',
    'dmesg',
    'echo',
    'env',
    'false',
    'grep',
    'head',
  ],
  ...[
    'hostname',
    'id',
    'ifconfig',
    'ifdown',
    'ifup',
    'ip',
    'kill',
    'ln',
    'ls',
    'mkdir',
    'mknod',
    'mount',
    'mv',
    'nc',
    'nproc',
    'ping',
  ],
  ...['ps', 'readlink', 'rm', 'route', 'sed', 'seq', 'setsid', 'sleep', 'stat', 'stty', 'su', 'sync', 'sysctl', 'tail'],
  ...[
    'tee',
    'test',
    'timeout',
    'touch',
    'tr',
    'true',
    'tty',
    'umount',
    'uname',
    'unshare',
    'wc',
    'wget',
    'whoami',
    'yes',
  ],
]

/** Writes an archive as `docker save` makes it, of layers that are tar archives. */
export async function writeImage(file: string, layers: readonly Uint8Array[], config: ImageSays = {}): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'patchbay-image-'))
  try {
    const diff_ids = layers.map((layer) => `sha256:${createHash('sha256').update(layer).digest('hex')}`)
    const names = layers.map((_, index) => `layer-${index}.tar`)
    for (const [index, layer] of layers.entries()) await writeFile(join(work, `layer-${index}.tar`), layer)
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch
    const image = { architecture, os: 'linux', config, rootfs: { type: 'layers', diff_ids } }
    await writeFile(join(work, 'config.json'), JSON.stringify(image))
    const manifest = [{ Config: 'config.json', RepoTags: ['test:latest'], Layers: names }]
    await writeFile(join(work, 'manifest.json'), JSON.stringify(manifest))
    execFileSync('tar', ['-C', work, '-cf', file, 'manifest.json', 'config.json', ...names])
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** A layer with busybox, as most images of tests have it. */
export async function busyboxLayer(): Promise<Uint8Array> {
  const work = await mkdtemp(join(tmpdir(), 'patchbay-layer-'))
  try {
    for (const name of ['bin', 'etc', 'root', 'tmp']) await mkdir(join(work, name))
    await copyFile('/bin/busybox', join(work, 'bin/busybox'))
    for (const name of applets) await symlink('busybox', join(work, 'bin', name))
    await writeFile(join(work, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/:/bin/sh\n')
    await writeFile(join(work, 'etc/group'), 'root:x:0:\nuser:x:1000:\n')
    await mkdir(join(work, 'var'))
    await symlink('/run', join(work, 'var/run'))
    const layer = join(work, 'layer.tar')
    execFileSync('tar', [
      '-C',
      work,
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '-cf',
      layer,
      'bin',
      'etc',
      'root',
      'tmp',
      'var',
    ])
    return await readFile(layer)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Writes an image with busybox whose command is a shell, unless it says another one. */
export async function writeBusyboxImage(file: string, says: ImageSays = {}): Promise<void> {
  await writeImage(file, [await busyboxLayer()], { Cmd: ['/bin/sh'], WorkingDir: '/', ...says })
}
