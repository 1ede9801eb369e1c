import { execFile } from 'node:child_process'
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { cpio, type Entry } from './cpio.ts'
import { guestCommandLine, guestFiles } from './files.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../../..')

/** TCP port of the service in the guest. */
export const appliancePort = 3080

export interface ApplianceWish {
  /** Of its first adapter, in a network of four addresses. */
  readonly address: string
  /** Address of the host in that network. */
  readonly host: string
  readonly version: string
  readonly user: string
  readonly password: string
}

export interface ApplianceGuest {
  readonly kernel: string
  readonly initrd: string
  readonly commandLine: string
  /** MiB. */
  readonly ram: number
}

/**
 * The test guest with something in it that answers as a compute; its files are in the directory. With TEST_APPLIANCE=program
 * that is this very program, which takes a minute of a busy processor to boot; else a small one.
 */
export async function applianceGuest(directory: string, wish: ApplianceWish): Promise<ApplianceGuest> {
  const files = await guestFiles()
  const isProgram = process.env.TEST_APPLIANCE === 'program'
  const { command, entries } = await (isProgram ? ownProgram(directory, wish) : responder(directory, wish))
  const guest = { kernel: join(directory, 'vmlinux'), initrd: join(directory, 'initrd.img') }
  await copyFile(files.kernel, guest.kernel)
  const own = cpio([
    ...entries,
    { path: 'init', type: 'file', mode: 0o755, content: Buffer.from(init(wish.host, command)) },
    await file('/init.guest', join(import.meta.dirname, 'init.sh')),
  ])
  // The kernel unpacks one archive after the other; what comes later counts.
  await writeFile(guest.initrd, [await readFile(files.initrd), own])
  const commandLine = guestCommandLine(`pb.host=appliance pb.ip=${wish.address}/30`)
  // The first file system may have half of it, and Node alone is 130 MB.
  return { ...guest, commandLine, ram: isProgram ? 640 : 160 }
}

/** It shows itself to the host, which knows its address from then on, as one would that asks for a lease. */
const init = (host: string, command: string): string => `#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
(
  until /bin/busybox ping -c 1 -W 1 ${host}; do /bin/busybox sleep 1; done
  exec ${command}
) >/dev/null 2>&1 &
exec /bin/busybox sh /init.guest
`

interface Service {
  readonly command: string
  readonly entries: readonly Entry[]
}

async function responder(directory: string, { version, address }: ApplianceWish): Promise<Service> {
  const program = join(directory, 'responder')
  const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-static']
  await run('gcc', [...flags, '-o', program, join(import.meta.dirname, 'responder.c')])
  return { command: `/responder ${version} ${address}`, entries: [await file('/responder', program)] }
}

async function ownProgram(directory: string, { user, password }: ApplianceWish): Promise<Service> {
  const program = join(directory, 'program')
  await run(process.execPath, ['scripts/build.ts', program], { cwd: root })
  const names = (await readdir(program)).filter((name) => name.endsWith('.js'))
  const libraries = await librariesOf(process.execPath)
  const config = `user = ${JSON.stringify(user)}\npassword = ${JSON.stringify(password)}\n`
  const entries: Entry[] = [
    ...directoriesOf(libraries),
    ...(await Promise.all(libraries.map((path) => file(path, path)))),
    await file('/bin/node', process.execPath),
    { path: 'patchbay', type: 'directory' },
    ...(await Promise.all(names.map((name) => file(`/patchbay/${name}`, join(program, name))))),
    await file('/patchbay/package.json', join(root, 'package.json')),
    { path: 'patchbay/config.toml', type: 'file', mode: 0o600, content: Buffer.from(config) },
  ]
  // Nothing runs here so long that it would be worth a better code.
  const node = '/bin/node --no-opt --no-sparkplug --max-lazy /patchbay/patchbay.js'
  const where = `--host 0.0.0.0 --port ${appliancePort} --data /tmp/data --config /patchbay/config.toml`
  return { command: `${node} serve ${where}`, entries }
}

/** What the loader wants of a program, itself included. */
async function librariesOf(program: string): Promise<string[]> {
  const { stdout } = await run('ldd', [program])
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)
}

/** Those in which the files are, from the top. */
function directoriesOf(paths: readonly string[]): Entry[] {
  const found = new Set<string>()
  const add = (path: string): void => {
    if (path === '/' || found.has(path)) return
    add(dirname(path))
    found.add(path)
  }
  for (const path of paths) add(dirname(path))
  return [...found].map((path) => ({ path: relative('/', path), type: 'directory' }))
}

const file = async (path: string, source: string): Promise<Entry> => ({
  ...{ path: relative('/', path), type: 'file', mode: 0o755 },
  content: await readFile(source),
})
