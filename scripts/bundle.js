import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'

// JavaScript, so that any Node that Patchbay runs on can build it.

const root = join(import.meta.dirname, '..')
const docsScript = join(root, 'runtime/vendor/rapidoc-min.js')
const weekMs = 7 * 86_400_000

/**
 * Bundles the program, and what it starts in processes and threads of their own, into a directory. Two bundles with the same
 * `build` share their keepers: it is the digest of the sources unless a test says otherwise.
 */
export async function bundle(outdir, { build: given, define, ...more } = {}) {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  // Only who bundles needs the bundler.
  const { build } = await import('esbuild')
  await build({
    absWorkingDir: root,
    entryPoints: {
      patchbay: 'runtime/node/main.ts',
      keeper: 'runtime/node/keeper/main.ts',
      'pc-host': 'runtime/node/keeper/pc-host.ts',
      'packet-worker': 'runtime/node/switch/fast/worker.ts',
      'hash-worker': 'runtime/node/storage/hash-worker.ts',
    },
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    legalComments: 'none',
    // A native library, found beside the program in node_modules.
    external: ['koffi'],
    define: {
      PATCHBAY_VERSION: JSON.stringify(version),
      PATCHBAY_BUILD: JSON.stringify(given ?? (await digestOfSources())),
      ...define,
    },
    // Bundled CommonJS packages ask for Node's modules by require.
    banner: {
      js: "import { createRequire as _createRequire } from 'node:module'; const require = _createRequire(import.meta.url);",
    },
    logLevel: 'warning',
    ...more,
  })
  await mkdir(join(outdir, 'assets'), { recursive: true })
  await copyFile(docsScript, join(outdir, 'assets/rapidoc-min.js'))
}

async function digestOfSources() {
  const hash = createHash('sha256')
  const sources = await Promise.all(['src', 'runtime/node'].map(sourcesIn))
  for (const name of [...sources.flat().sort(), 'package-lock.json']) {
    hash.update(name).update(await readFile(join(root, name)).catch(() => ''))
  }
  return hash.digest('hex').slice(0, 12)
}

async function sourcesIn(directory) {
  const entries = await readdir(join(root, directory), { withFileTypes: true, recursive: true })
  const files = entries.filter((it) => it.isFile() && it.name.endsWith('.ts'))
  return files.map((it) => relative(root, join(it.parentPath ?? it.path, it.name)))
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
    const isPart = (name) => /^(assets\/|chunk|[\w-]+-[A-Z0-9]{8}\.)/.test(name)
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
  for (const place of ['src', 'runtime', 'package.json', 'package-lock.json', 'scripts/bundle.js']) {
    if ((await lastChange(join(root, place))) > built) return false
  }
  return true
}

/** When a file, or anything in a directory, was changed last, ms; 0 when it is not there. */
async function lastChange(path) {
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined) return 0
  if (!stats.isDirectory()) return stats.mtimeMs
  const inner = await Promise.all((await readdir(path)).map((name) => lastChange(join(path, name))))
  return Math.max(stats.mtimeMs, ...inner)
}
