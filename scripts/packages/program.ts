import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { bundle } from '../bundle.js'
import { licence, licencesOf, packageOf } from '../licences.js'

export const root = join(import.meta.dirname, '../..')
const pictures = join(root, 'docs/pictures')
export const run = promisify(execFile)

/** Processors that the FFI library is packed for, as Node names them. Elsewhere the program moves frames by node:dgram. */
export const processors = ['x64', 'arm64'] as const
export type Processor = (typeof processors)[number]

/** The packages that are loaded from node_modules while the program runs; all others are in its bundle. */
const loaded = {
  koffi: ['package.json', 'LICENSE.txt', 'index.cjs', 'src/koffi/index.cjs', 'src/koffi/src/static.cjs'],
  '@xmldom/xmldom': ['package.json', 'LICENSE', 'lib'],
}

interface Lock {
  readonly packages: Readonly<Record<string, Locked>>
}
interface Locked {
  readonly version: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly optional?: boolean
}

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly engines: Readonly<Record<string, string>>
  readonly bin: Readonly<Record<string, string>>
}

export const manifest = async (): Promise<Manifest> => JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const lock = async (): Promise<Lock> => JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'))

export interface ProgramOptions {
  /** The processors that it runs on with its fast packet path. */
  readonly for: readonly Processor[]
  /** The name of the build; the digest of the sources unless a test says otherwise. */
  readonly build?: string
}

/**
 * Writes the program into a directory, with all that it needs beside Node: its bundle, the packages that it loads, without what
 * only their own build needs, and the licences of all packages.
 */
export async function writeProgram(directory: string, { for: wanted, build }: ProgramOptions): Promise<void> {
  const { name, version, description, license, engines, bin } = await manifest()
  await bundle(join(directory, 'dist'), build === undefined ? {} : { build })
  await chmod(join(directory, 'dist/patchbay.js'), 0o755)
  const { packages } = await lock()
  const versions: Record<string, string> = {}
  for (const [packed, files] of Object.entries(loaded)) {
    versions[packed] = packages[`node_modules/${packed}`]?.version ?? ''
    for (const file of files)
      await copy(join(root, 'node_modules', packed, file), join(directory, 'node_modules', packed, file))
  }
  const koffi = join(directory, 'node_modules/koffi')
  await rewrite(join(koffi, 'package.json'), ({ name, version, license, main }) => ({ name, version, license, main }))
  await rewrite(join(directory, 'node_modules/@xmldom/xmldom/package.json'), ({ name, version, license, main }) => ({
    name,
    version,
    license,
    main,
  }))
  for (const processor of wanted) {
    const place = join(koffi, `build/koffi/linux_${processor}`)
    await mkdir(place, { recursive: true })
    await writeFile(join(place, 'koffi.node'), await nativeLibrary(processor))
  }
  await writeFile(join(directory, 'THIRD-PARTY-LICENSES.txt'), await licences())
  await writeJson(join(directory, 'package.json'), {
    ...{ name, version, description, license, type: 'module', engines, bin },
    dependencies: versions,
    bundleDependencies: Object.keys(versions),
  })
}

/** The package that has the FFI library for glibc on a processor. */
export const nativePackage = (processor: Processor): string => `@koromix/koffi-linux-${processor}`

/** The FFI library for glibc on a processor: that of node_modules, or, for another processor, that of the registry. */
async function nativeLibrary(processor: Processor): Promise<Buffer> {
  const name = nativePackage(processor)
  const file = `linux_${processor}/koffi.node`
  const here = await readFile(join(root, 'node_modules', name, file)).catch(() => undefined)
  if (here !== undefined) return here
  const { version = '', integrity } = (await lock()).packages[`node_modules/${name}`] ?? {}
  const place = await mkdtemp(join(tmpdir(), 'patchbay-native-'))
  try {
    const { stdout } = await run('npm', ['pack', `${name}@${version}`, '--silent', '--prefer-offline'], { cwd: place })
    const archive = join(place, stdout.trim())
    const digest = createHash('sha512').update(await readFile(archive))
    if (`sha512-${digest.digest('base64')}` !== integrity)
      throw new Error(`${name}@${version} is not the package of package-lock.json`)
    await run('tar', ['-xzf', archive, '-C', place, `package/${file}`])
    return await readFile(join(place, 'package', file))
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

/** The directories in node_modules of what is bundled or loaded, with the versions of the packages. */
export async function shipped(): Promise<readonly (readonly [path: string, version: string])[]> {
  const { packages } = await lock()
  // The bundler's output is not part of the bundler.
  const isIn = ([path, { dev, optional }]: [string, Locked]) =>
    path !== '' && dev !== true && optional !== true && packageOf(path) !== 'node_modules/esbuild'
  return Object.entries(packages)
    .filter(isIn)
    .map(([path, { version }]) => [path, version])
}

/** The licences of what is bundled or loaded. */
async function licences(): Promise<string> {
  const texts = [await licencesOf((await shipped()).map(([path]) => path))]
  const vendor = join(root, 'runtime/vendor')
  for (const file of (await readdir(vendor)).filter((it) => /LICENSE/.test(it)).sort())
    texts.push(licence(`The reference page (${file})`, await readFile(join(vendor, file), 'utf8')))
  return texts.join('\n')
}

/** Copies a file, or a directory without its hidden files. */
export async function copy(from: string, to: string): Promise<void> {
  await mkdir(join(to, '..'), { recursive: true })
  // Pictures of the page are for those who read the documents elsewhere: they are larger than all of these.
  const isShown = (path: string) => !basename(path).startsWith('.') && path !== pictures
  await cp(from, to, { recursive: true, filter: isShown })
}

/** Replaces a JSON file by what becomes of its value. */
export async function rewrite(file: string, change: (it: Record<string, unknown>) => unknown): Promise<void> {
  await writeJson(file, change(JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>))
}

const writeJson = (file: string, value: unknown): Promise<void> =>
  writeFile(file, `${JSON.stringify(value, undefined, 2)}\n`)

/** A directory for the time that `make` takes. */
export async function inDirectory<T>(make: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-package-'))
  try {
    return await make(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** When what is packed was committed, s since 1970; now where there is no git. */
export async function secondsOfCommit(): Promise<number> {
  const { SOURCE_DATE_EPOCH: given } = process.env
  if (given !== undefined) return Number(given)
  const { stdout } = await run('git', ['log', '-1', '--format=%ct'], { cwd: root }).catch(() => ({ stdout: '' }))
  return stdout === '' ? Math.floor(Date.now() / 1000) : Number(stdout)
}
