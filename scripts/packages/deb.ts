import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import {
  copy,
  inDirectory,
  manifest,
  type Processor,
  type ProgramOptions,
  root,
  run,
  secondsOfCommit,
  writeProgram,
} from './program.ts'

const packaging = join(root, 'packaging/debian')
const architectures: Readonly<Record<Processor, string>> = { x64: 'amd64', arm64: 'arm64' }
const maintainer = 'Patchbay developers <patchbay@packages.invalid>'

export interface DebOptions extends Partial<ProgramOptions> {
  /** The version of Debian's form; that of the program unless a test says otherwise. */
  readonly version?: string
  /** How dpkg-deb compresses; smallest unless a test says otherwise. */
  readonly compression?: readonly string[]
}

/** The processor of this machine; an error where no package is made for it. */
function ownProcessor(): Processor {
  if (process.arch !== 'x64' && process.arch !== 'arm64')
    throw new Error(`packages are made for x64 and arm64, not for ${process.arch}`)
  return process.arch
}

/** Makes the Debian package of the program and its systemd service; its path. `for` names one processor. */
export async function packDeb(out: string, options: DebOptions = {}): Promise<string> {
  const { for: wanted = [ownProcessor()], build } = options
  const { version: own, description, engines } = await manifest()
  const version = options.version ?? `${own}-1`
  const node = /\d+(\.\d+)*/.exec(engines.node ?? '')?.[0]
  return await inDirectory(async (directory) => {
    const tree = join(directory, 'tree')
    const program = join(tree, 'usr/lib/patchbay')
    await writeProgram(program, { for: wanted, ...(build !== undefined && { build }) })
    const doc = join(tree, 'usr/share/doc/patchbay')
    await mkdir(doc, { recursive: true })
    await rename(join(program, 'THIRD-PARTY-LICENSES.txt'), join(doc, 'THIRD-PARTY-LICENSES.txt'))
    await rm(join(program, 'node_modules/koffi/LICENSE.txt'))
    await rm(join(program, 'node_modules/@xmldom/xmldom/LICENSE'))
    await copy(join(root, 'docs'), join(doc, 'docs'))
    await copy(join(root, 'README.md'), join(doc, 'README.md'))
    await writeFile(join(doc, 'changelog.gz'), gzipSync(await readFile(join(root, 'CHANGELOG.md')), { level: 9 }))
    await copy(join(packaging, 'patchbay.copyright'), join(doc, 'copyright'))
    await copy(join(packaging, 'patchbay.sh'), join(tree, 'usr/bin/patchbay'))
    await chmod(join(tree, 'usr/bin/patchbay'), 0o755)
    await copy(join(packaging, 'patchbay.service'), join(tree, 'lib/systemd/system/patchbay.service'))
    await copy(join(packaging, 'patchbay.toml'), join(tree, 'etc/patchbay/patchbay.toml'))
    return await buildTree(tree, out, {
      ...{ name: 'patchbay', version, architecture: architectures[wanted[0] ?? ownProcessor()] },
      ...(options.compression !== undefined && { compression: options.compression }),
      fields: {
        Depends: `libc6 (>= 2.28), libstdc++6 (>= 5), adduser, nodejs (>= ${node}) | patchbay-node`,
        Recommends: 'bubblewrap',
        Suggests: 'qemu-system-x86, qemu-utils, libslirp0, libpcap0.8',
        Section: 'net',
        Description: `${description.replace(/[:.].*$/, '')}
 Projects, nodes, links and consoles of emulated networks, as a service of
 systemd. Guests run on while the service restarts or is upgraded.`,
      },
      scripts: ['postinst', 'prerm', 'postrm'],
      conffiles: ['/etc/patchbay/patchbay.toml'],
    })
  })
}

/** Makes the Debian package of a Node for systems whose own is too old: that of the development dependencies; its path. */
export async function packNodeDeb(out: string, options: Pick<DebOptions, 'compression'> = {}): Promise<string> {
  const processor = ownProcessor()
  const from = join(root, `node_modules/node/node_modules/node-linux-${processor}`)
  const { version } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8')) as { version: string }
  return await inDirectory(async (directory) => {
    const tree = join(directory, 'tree')
    const program = join(tree, 'usr/lib/patchbay-node/node')
    await mkdir(join(program, '..'), { recursive: true })
    await cp(join(from, 'bin/node'), program)
    await chmod(program, 0o755)
    await run('strip', ['--remove-section=.comment', '--remove-section=.note', program])
    const doc = join(tree, 'usr/share/doc/patchbay-node')
    await copy(join(from, 'LICENSE'), join(doc, 'NODE-LICENSE.txt'))
    await copy(join(packaging, 'patchbay-node.copyright'), join(doc, 'copyright'))
    return await buildTree(tree, out, {
      ...{ name: 'patchbay-node', version: `${version}-1`, architecture: architectures[processor] },
      ...(options.compression !== undefined && { compression: options.compression }),
      fields: {
        Depends: 'libc6 (>= 2.28), libstdc++6 (>= 6)',
        Section: 'javascript',
        Description: `Node.js for the package patchbay
 The package patchbay runs on it where the distribution has no Node.js 20.19
 or later.`,
      },
      scripts: [],
      conffiles: [],
    })
  })
}

interface Built {
  readonly name: string
  readonly version: string
  readonly architecture: string
  readonly compression?: readonly string[]
  readonly fields: Readonly<Record<string, string>>
  readonly scripts: readonly string[]
  readonly conffiles: readonly string[]
}

/** Packs a tree. The same tree and commit give the same bytes. */
async function buildTree(tree: string, out: string, built: Built): Promise<string> {
  const { name, version, architecture, fields, scripts, conffiles, compression = ['-Zxz', '-z9'] } = built
  const seconds = await secondsOfCommit()
  const date = new Date(seconds * 1000).toUTCString().replace('GMT', '+0000')
  const changes = `${name} (${version}) unstable; urgency=medium\n\n  * See /usr/share/doc/patchbay/changelog.gz.\n\n -- ${maintainer}  ${date}\n`
  const doc = join(tree, 'usr/share/doc', name)
  await writeFile(join(doc, 'changelog.Debian.gz'), gzipSync(changes, { level: 9 }))
  const overrides = join(packaging, `${name}.lintian-overrides`)
  await copy(overrides, join(tree, 'usr/share/lintian/overrides', name))
  await settle(tree)
  const control = join(tree, 'DEBIAN')
  await mkdir(control)
  const { Description, ...others } = fields
  const lines = {
    Package: name,
    Version: version,
    Architecture: architecture,
    Maintainer: maintainer,
    ...{ 'Installed-Size': await sizeOf(tree), Priority: 'optional', ...others, Description },
  }
  const text = Object.entries(lines).map(([key, value]) => `${key}: ${value}\n`)
  await writeFile(join(control, 'control'), text.join(''))
  if (conffiles.length > 0) await writeFile(join(control, 'conffiles'), conffiles.map((it) => `${it}\n`).join(''))
  for (const script of scripts) {
    await copy(join(packaging, script), join(control, script))
    await chmod(join(control, script), 0o755)
  }
  await writeFile(join(control, 'md5sums'), await sumsOf(tree), { mode: 0o644 })
  await mkdir(out, { recursive: true })
  const file = join(out, `${name}_${version}_${architecture}.deb`)
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(seconds) }
  await run('dpkg-deb', ['--root-owner-group', ...compression, '--build', tree, `${file}.new`], { env })
  await rename(`${file}.new`, file)
  return file
}

/** The modes that Debian wants, whatever the umask of this process is. */
async function settle(tree: string): Promise<void> {
  await chmod(tree, 0o755)
  for (const entry of await readdir(tree, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const isProgram = /\/bin\/|patchbay-node\/node$|dist\/patchbay\.js$/.test(path)
    await chmod(path, entry.isDirectory() || isProgram ? 0o755 : 0o644)
  }
}

async function sizeOf(tree: string): Promise<string> {
  const { stdout } = await run('du', ['-sk', '--apparent-size', tree])
  return stdout.split('\t')[0] ?? ''
}

async function sumsOf(tree: string): Promise<string> {
  const command = "find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\\0' | sort -z | xargs -0 md5sum"
  return (await run('sh', ['-c', command], { cwd: tree })).stdout
}
