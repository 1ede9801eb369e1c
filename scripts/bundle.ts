import { copyFile, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type BuildOptions, build } from 'esbuild'

const require = createRequire(import.meta.url)
const root = join(import.meta.dirname, '..')

/** Bundles the program, and what it starts in processes and threads of their own, into a directory. */
export async function bundle(outdir: string, more: BuildOptions = {}): Promise<void> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  await build({
    absWorkingDir: root,
    entryPoints: {
      patchbay: 'runtime/node/main.ts',
      keeper: 'runtime/node/keeper/main.ts',
      'pc-host': 'runtime/node/keeper/pc-host.ts',
      'packet-worker': 'runtime/node/keeper/switch/fast/worker.ts',
      'hash-worker': 'runtime/node/projects/hash-worker.ts',
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
    define: { PATCHBAY_VERSION: JSON.stringify(version) },
    // Bundled CommonJS packages ask for Node's modules by require.
    banner: {
      js: "import { createRequire as _createRequire } from 'node:module'; const require = _createRequire(import.meta.url);",
    },
    logLevel: 'warning',
    ...more,
  })
  await copyFile(require.resolve('rapidoc/dist/rapidoc-min.js'), join(outdir, 'rapidoc-min.js'))
}
