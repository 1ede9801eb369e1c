import { execFile } from 'node:child_process'
import { access, constants, mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { decompressed } from './decompressed.ts'

const run = promisify(execFile)
/** The one for clouds has no e1000. */
const metapackage = 'linux-image-amd64'
/** For one program of the package manager, ms. */
const longest = 300_000

export interface Kernel {
  /** What `uname -r` prints in the guest. */
  readonly release: string
  readonly image: Buffer
  /** /lib/modules/{release} */
  readonly modules: string
}

/** The newest kernel that is installed here with all of its modules, or else that of Debian, unpacked in the directory. */
export async function findKernel(directory: string): Promise<Kernel> {
  return (await kernelUnder('/')) ?? (await downloaded(directory))
}

async function kernelUnder(root: string): Promise<Kernel | undefined> {
  const names = await readdir(join(root, 'boot')).catch(() => [])
  const releases = names.flatMap((name) => /^vmlinuz-(\d.*-amd64)$/.exec(name)?.[1] ?? [])
  // Their numbers count, not their digits.
  for (const release of releases.sort(new Intl.Collator('en', { numeric: true }).compare).reverse()) {
    const modules = join(root, 'lib/modules', release)
    // Kernels of other distributions are for root only, and those for clouds have no such driver.
    const needed = [join(root, 'boot', `vmlinuz-${release}`), join(modules, 'kernel/drivers/net/ethernet/intel/e1000')]
    if (!(await canRead(needed))) continue
    return { release, modules, image: await quickest(join(root, 'boot'), release) }
  }
  return undefined
}

const canRead = (paths: readonly string[]): Promise<boolean> =>
  Promise.all(paths.map((path) => access(path, constants.R_OK))).then(
    () => true,
    () => false,
  )

/**
 * The kernel without its compression, where it can be started like that (as a PVH guest): an emulated processor
 * takes three seconds to unpack it.
 */
async function quickest(boot: string, release: string): Promise<Buffer> {
  const image = await readFile(join(boot, `vmlinuz-${release}`))
  const config = await readFile(join(boot, `config-${release}`), 'utf8')
  if (!/^CONFIG_PVH=y$/m.test(config)) return image
  // The x86 boot protocol, "The Real-Mode Kernel Header": setup_sects, payload_offset, payload_length.
  const start = (image.readUInt8(0x1f1) + 1) * 512 + image.readUInt32LE(0x248)
  const payload = image.subarray(start, start + image.readUInt32LE(0x24c))
  // Its last word is the unpacked length, which is part of the format in gzip and of no other.
  const isGzip = payload.readUInt16BE() === 0x1f8b
  const unpacked = await decompressed(isGzip ? payload : payload.subarray(0, -4))
  return unpacked.toString('latin1', 0, 4) === '\x7fELF' ? unpacked : image
}

async function downloaded(directory: string): Promise<Kernel> {
  const bounds = { cwd: directory, timeout: longest, maxBuffer: 1 << 24 }
  const { stdout } = await run('apt-cache', ['depends', metapackage], bounds)
  const name = /Depends: (linux-image-\S+)/.exec(stdout)?.[1]
  if (name === undefined) throw new Error(`the package manager knows no ${metapackage}`)
  await run('apt-get', ['download', name], bounds)
  const file = (await readdir(directory)).find((it) => it.endsWith('.deb'))
  if (file === undefined) throw new Error(`${name} was not downloaded`)
  await mkdir(join(directory, 'root'))
  await run('dpkg-deb', ['-x', file, 'root'], bounds)
  const kernel = await kernelUnder(join(directory, 'root'))
  if (kernel === undefined) throw new Error(`${name} is not the kernel that was expected`)
  return kernel
}
