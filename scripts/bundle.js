import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { bundleBrowser } from './bundle-browser.js'

// JavaScript, so that any Node that Patchbay runs on can build it.

const root = join(import.meta.dirname, '..')
const docsScript = join(root, 'runtime/vendor/rapidoc-min.js')
const weekMs = 7 * 86_400_000
/** Types alone, made for the compiler: no part of any program, and not there before the first run of the compiler. */
const clientTypes = join(root, 'src/client/calls.ts')
const programs = {
  patchbay: 'runtime/node/main.ts',
  keeper: 'runtime/node/keeper/process/main.ts',
  'pc-host': 'runtime/node/keeper/process/pc-host.ts',
  nat: 'runtime/node/drivers/nat/main.ts',
  'packet-worker': 'runtime/node/dataplane/fast/worker.ts',
  'hash-worker': 'runtime/node/engine/storage/hash-worker.ts',
  'reader-thread': 'runtime/node/service/labs/reader-thread.ts',
}

/** What commands load of the service: bundled apart, so that commands which ask a service share no part with it and load none of it. */
const serviceParts = ['service/serve', 'service/config/load', 'cli/doctor', 'cli/config', 'cli/setting-flags'].map(
  (name) => `runtime/node/${name}.ts`,
)

/**
 * Bundles the program, and what it starts in processes and threads of their own, into a directory. Two bundles with the same
 * `build` share their keepers: it is the digest of the sources unless a test says otherwise. `others`: more programs, by their names.
 */
export async function bundle(outdir, { build: given, define, others = {}, ...more } = {}) {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  // Only who bundles needs the bundler.
  const esbuild = await import('esbuild')
  const digest = given ?? (await digestOfSources())
  const options = {
    absWorkingDir: root,
    outdir: resolve(root, outdir),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    // A native library, found beside the program in node_modules.
    external: ['koffi'],
    define: {
      PATCHBAY_VERSION: JSON.stringify(version),
      PATCHBAY_BUILD: JSON.stringify(digest),
      ...define,
    },
    // Bundled CommonJS packages ask for Node's modules by require.
    banner: {
      js: "import { createRequire as _createRequire } from 'node:module'; const require = _createRequire(import.meta.url);",
    },
    // A part imports parts of its own build alone, also in a directory with parts of an older one.
    chunkNames: `[name]-${digest}-[hash]`,
    metafile: true,
    logLevel: 'warning',
    ...more,
    plugins: [requiredHttp, fastZip, sshServer, ...(more.plugins ?? [])],
  }
  // Each process and thread has a bundle of its own: parts in common would be dozens of small files, which a start reads one by one.
  const partName = (source) => `${basename(source, '.ts')}-of-service-${digest}`
  const build = async ([name, source]) =>
    esbuild.build({
      ...options,
      splitting: name === 'patchbay',
      ...(name === 'patchbay' && { plugins: [apart(serviceParts, partName), ...options.plugins] }),
      entryPoints: { [name]: source },
    })
  const parts = Object.fromEntries(serviceParts.map((source) => [partName(source), source]))
  const [files, service, commands] = await Promise.all([
    bundleBrowser(),
    // Parts of the other bundle may have the same content, and are merged into other files.
    esbuild.build({
      ...options,
      splitting: true,
      entryPoints: parts,
      chunkNames: `[name]-of-service-${digest}-[hash]`,
    }),
    ...Object.entries({ ...programs, ...others }).map(build),
  ])
  const { outputs } = service.metafile
  const kinds = Object.keys(outputs).filter((path) => /^runtime\/node\/drivers\//.test(outputs[path].entryPoint ?? ''))
  const [load, serve] = ['service/config/load.ts', 'service/serve.ts'].map((source) => outputOf(outputs, source))
  await mergeParts(esbuild, options, { outputs, groups: [[load], [serve, ...kinds]] })
  // The program imports `main` before it knows its command. The small commands come into one file.
  const all = commands.metafile.outputs
  const main = outputOf(all, 'main.ts')
  const ofCommands = all[main].imports.filter((it) => it.kind === 'dynamic-import' && !it.external).map((it) => it.path)
  const small = ofCommands.filter((path) => sizeWith(all, path) < smallBytes)
  await mergeParts(esbuild, options, { outputs: all, groups: [small], stays: main })
  await mkdir(join(outdir, 'assets'), { recursive: true })
  await copyFile(docsScript, join(outdir, 'assets/rapidoc-min.js'))
  for (const [name, text] of files) await writeFile(join(outdir, 'assets', name), text)
}

/** Node reads all members of a module that is imported, and loads undici for those of node:http: it is required instead. */
const requiredHttp = {
  name: 'required-http',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'http', namespace: 'required' } : undefined,
    )
    onLoad({ filter: /./, namespace: 'required' }, () => ({ contents: 'module.exports = require("node:http")' }))
  },
}

/**
 * Of ssh2 the server is enough. It does without its native parts, which would have to be compiled where the program is installed, and
 * without the WebAssembly of ChaCha20-Poly1305: the ciphers that are offered are those of Node.
 */
const sshServer = {
  name: 'ssh-server',
  setup({ onResolve, onLoad }) {
    const namespace = 'ssh-server'
    onResolve({ filter: /^ssh2$/ }, () => ({ path: 'server', namespace }))
    onResolve({ filter: /^cpu-features$|\/sshcrypto\.node$/ }, () => ({ path: 'native', namespace }))
    onResolve({ filter: /\/crypto\/poly1305\.js$/ }, () => ({ path: 'poly1305', namespace }))
    onLoad({ filter: /^server$/, namespace }, () => ({
      contents: `exports.Server = require("ssh2/lib/server.js")
exports.utils = { ...require("ssh2/lib/protocol/keyParser.js"), ...require("ssh2/lib/keygen.js") }`,
      resolveDir: root,
    }))
    onLoad({ filter: /^native$/, namespace }, () => ({ contents: 'throw new Error("left out")' }))
    onLoad({ filter: /^poly1305$/, namespace }, () => ({
      contents: 'module.exports = async () => ({ _malloc() {}, cwrap() {} })',
    }))
  },
}

/**
 * The CRC-32 of yazl is JavaScript, and takes as long as a fourth of a deflate of level 1: Node has its own. And yazl compresses in one
 * thread, into pieces of 16 KiB.
 */
const fastZip = {
  name: 'fast-zip',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^buffer-crc32$/ }, () => ({ path: 'crc32', namespace: 'fast-zip' }))
    onResolve({ filter: /^zlib$/ }, ({ importer }) =>
      /[/\\]yazl[/\\]index\.js$/.test(importer) ? { path: 'deflate', namespace: 'fast-zip' } : undefined,
    )
    onLoad({ filter: /^crc32$/, namespace: 'fast-zip' }, () => ({
      contents: 'exports.unsigned = require("node:zlib").crc32',
    }))
    onLoad({ filter: /^deflate$/, namespace: 'fast-zip' }, () => ({
      contents: `const { parallelDeflate } = require("./runtime/node/service/labs/parallel-deflate.ts")
exports.DeflateRaw = function (options) { return parallelDeflate(options) }`,
      resolveDir: root,
    }))
  },
}

/** Sources that another bundle has: they are imported from there. */
const apart = (sources, nameOf) => ({
  name: 'apart',
  setup({ onResolve }) {
    onResolve({ filter: /\.ts$/ }, ({ kind, path, resolveDir }) => {
      const source = relative(root, join(resolveDir, path))
      const isApart = kind === 'dynamic-import' && sources.includes(source)
      return isApart ? { path: `./${nameOf(source)}.js`, external: true } : undefined
    })
  },
})

/** Commands of less than this share a file, bytes. */
const smallBytes = 80_000

/** The bytes of a part with those that it always loads. */
function sizeWith(outputs, path, seen = new Set()) {
  if (seen.has(path) || outputs[path] === undefined) return 0
  seen.add(path)
  const { bytes, imports } = outputs[path]
  const always = imports.filter(({ kind }) => kind === 'import-statement')
  return always.reduce((sum, it) => sum + sizeWith(outputs, it.path, seen), bytes)
}

/** The output of a source in `runtime/node`. */
const outputOf = (outputs, source) =>
  Object.keys(outputs).find((path) => outputs[path].entryPoint === `runtime/node/${source}`)

/**
 * The parts that are always loaded together come into one file each: a start reads one file after the other. `stays` and what
 * it imports stay as they are.
 */
async function mergeParts(esbuild, options, { outputs, groups: together, stays }) {
  const done = new Set()
  const take = (path) => {
    if (done.has(path) || outputs[path] === undefined) return []
    done.add(path)
    const imported = outputs[path].imports.filter(({ kind }) => kind === 'import-statement')
    return [path, ...imported.flatMap((it) => take(it.path))]
  }
  if (stays !== undefined) take(stays)
  const groups = together.map((paths) => paths.flatMap(take))
  const listOf = (path, name) => `{${outputs[path].exports.map(name).join()}}`
  const stubs = new Map()
  for (const [first, ...others] of groups) {
    for (const [at, path] of others.entries())
      stubs.set(join(root, path), `export${listOf(path, (it) => `p${at}_${it} as ${it}`)}from"${nameOf(first)}"`)
  }
  const merge = async ([first, ...others]) => {
    const ours = new Set([first, ...others].map((path) => join(root, path)))
    const contents = [
      `export*from"${nameOf(first)}"`,
      ...others.map((path, at) => `export${listOf(path, (it) => `${it} as p${at}_${it}`)}from"${nameOf(path)}"`),
    ]
    const parts = {
      name: 'parts',
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /^\.\// }, ({ path, kind }) => {
          const whole = join(options.outdir, path)
          const isMerged = kind === 'import-statement' && (ours.has(whole) || stubs.has(whole))
          return isMerged ? { path: whole } : { path, external: true }
        })
        onLoad({ filter: /./ }, async ({ path }) => ({
          contents: ours.has(path) ? (await readFile(path, 'utf8')).replace(options.banner.js, '') : stubs.get(path),
          resolveDir: options.outdir,
        }))
      },
    }
    const { outputFiles } = await esbuild.build({
      ...options,
      ...{ plugins: [parts], outdir: undefined, outfile: join(root, first), allowOverwrite: true, write: false },
      ...{ define: {}, stdin: { contents: contents.join(';'), resolveDir: options.outdir } },
    })
    return outputFiles.map(({ path, contents }) => [path, contents])
  }
  for (const [path, contents] of [...(await Promise.all(groups.map(merge))).flat(), ...stubs])
    await writeFile(path, contents)
}

const nameOf = (path) => `./${basename(path)}`

async function digestOfSources() {
  const hash = createHash('sha256')
  const sources = await Promise.all(['src', 'runtime/node'].map(sourcesIn))
  for (const name of [...sources.flat().sort(), 'package-lock.json', 'scripts/bundle.js']) {
    hash.update(name).update(await readFile(join(root, name)).catch(() => ''))
  }
  return hash.digest('hex').slice(0, 12)
}

async function sourcesIn(directory) {
  const entries = await readdir(join(root, directory), { withFileTypes: true, recursive: true })
  const files = entries.filter((it) => it.isFile() && it.name.endsWith('.ts'))
  const paths = files.map((it) => join(it.parentPath ?? it.path, it.name)).filter((path) => path !== clientTypes)
  return paths.map((path) => relative(root, path))
}

/**
 * Bundles into a directory from which a service may be running: every file comes to its place whole, those that others
 * import first, and what an older bundle has there stays for a week.
 */
export async function bundleInPlace(outdir) {
  await mkdir(outdir, { recursive: true })
  const made = await mkdtemp(join(outdir, '.made-'))
  try {
    await bundle(made)
    const entries = await readdir(made, { withFileTypes: true, recursive: true })
    const names = entries
      .filter((it) => it.isFile())
      .map((it) => relative(made, join(it.parentPath ?? it.path, it.name)))
    const isPart = (name) => /^(assets\/(?!index\.html)|chunk|[\w-]+-([A-Z0-9]{8}|[0-9a-f]{12})\.)/.test(name)
    await mkdir(join(outdir, 'assets'), { recursive: true })
    for (const name of [...names.filter(isPart), ...names.filter((it) => !isPart(it))]) {
      await rename(join(made, name), join(outdir, name))
    }
  } finally {
    await rm(made, { recursive: true, force: true })
  }
  for (const name of await readdir(outdir, { recursive: true })) {
    const { mtimeMs } = await stat(join(outdir, name)).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > weekMs) await rm(join(outdir, name), { recursive: true, force: true })
  }
}

/** Whether the program in a directory is there, and was bundled after the last change of its sources. */
export async function isFresh(outdir) {
  const { mtimeMs: built } = await stat(join(outdir, 'patchbay.js')).catch(() => ({ mtimeMs: 0 }))
  if (built === 0) return false
  for (const place of [
    'src',
    'runtime',
    'package.json',
    'package-lock.json',
    'scripts/bundle.js',
    'scripts/bundle-browser.js',
    'scripts/licences.js',
  ]) {
    if ((await lastChange(join(root, place))) > built) return false
  }
  return true
}

/** When a file, or anything in a directory, was changed last, ms; 0 when it is not there. */
async function lastChange(path) {
  const stats = path === clientTypes ? undefined : await stat(path).catch(() => undefined)
  if (stats === undefined) return 0
  if (!stats.isDirectory()) return stats.mtimeMs
  const inner = await Promise.all((await readdir(path)).map((name) => lastChange(join(path, name))))
  return Math.max(stats.mtimeMs, ...inner)
}
