import { chmod, copyFile, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { build } from 'esbuild'

const require = createRequire(import.meta.url)
const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }

await rm('dist', { recursive: true, force: true })
await build({
  entryPoints: {
    patchbay: 'runtime/node/main.ts',
    keeper: 'runtime/node/keeper/main.ts',
    'pc-host': 'runtime/node/keeper/pc-host.ts',
    'packet-worker': 'runtime/node/keeper/switch/fast/worker.ts',
    'hash-worker': 'runtime/node/projects/hash-worker.ts',
  },
  outdir: 'dist',
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
})
await copyFile(require.resolve('rapidoc/dist/rapidoc-min.js'), 'dist/rapidoc-min.js')
await chmod('dist/patchbay.js', 0o755)
