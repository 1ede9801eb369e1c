import { dirname, join } from 'node:path'
import { build } from 'esbuild'

// JavaScript, so that the lint needs nothing but what a checkout has. Fails when two folders import each other's values: by any way
// round. What is imported for its types alone is no import when the program runs, and does not count.

const root = join(import.meta.dirname, '..')
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: [
    ...['main', 'keeper/main', 'keeper/pc-host', 'kinds/nat/main', 'switch/fast/worker', 'storage/hash-worker'].map(
      (name) => `./runtime/node/${name}.ts`,
    ),
    './runtime/worker/worker.ts',
    './runtime/browser/main.tsx',
  ],
  outdir: 'dist',
  bundle: true,
  write: false,
  metafile: true,
  format: 'esm',
  packages: 'external',
  external: ['node:*', 'cloudflare:*', '*/page-files.js'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  loader: { '.js': 'text' },
  logLevel: 'error',
})

/** By folder: the folders whose values it imports, each with one import that shows it. */
const imports = new Map()
for (const [file, { imports: found }] of Object.entries(metafile.inputs)) {
  if (!/\.tsx?$/.test(file)) continue
  for (const { path, external } of found) {
    const [from, to] = [dirname(file), dirname(path)]
    if (external || from === to || !/\.tsx?$/.test(path)) continue
    if (!imports.has(from)) imports.set(from, new Map())
    if (!imports.get(from).has(to)) imports.get(from).set(to, `${file} imports ${path}`)
  }
}

const loops = []
const done = new Set()
const visit = (folder, way) => {
  const at = way.indexOf(folder)
  if (at >= 0) return void loops.push([...way.slice(at), folder])
  if (done.has(folder)) return
  for (const next of imports.get(folder)?.keys() ?? []) visit(next, [...way, folder])
  done.add(folder)
}
for (const folder of imports.keys()) visit(folder, [])

for (const loop of loops) {
  console.error(`Folders that import each other: ${loop.join(' -> ')}`)
  for (const [index, to] of loop.slice(1).entries()) console.error(`  ${imports.get(loop[index]).get(to)}`)
}
process.exitCode = loops.length === 0 ? 0 : 1
