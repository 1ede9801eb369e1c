import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

// JavaScript, as bundle.js, which uses it.

const root = join(import.meta.dirname, '..')
const page = 'runtime/browser/index.html'

/**
 * The files of the page for browsers, by name: scripts and style sheets, whose names have the digests of their contents, and
 * `index.html`, which names those of the first load.
 */
export async function bundleBrowser() {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const { build } = await import('esbuild')
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: { app: 'runtime/browser/main.tsx', style: 'runtime/browser/style/style.css' },
    outdir: 'browser',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    define: { PATCHBAY_VERSION: JSON.stringify(version) },
    logLevel: 'warning',
  })
  const files = new Map(outputFiles.map(({ path, text }) => [path.slice(path.lastIndexOf('/') + 1), text]))
  const { outputs } = metafile
  const nameOf = (source) =>
    Object.keys(outputs)
      .find((path) => outputs[path].entryPoint === source)
      ?.slice('browser/'.length)
  const script = nameOf('runtime/browser/main.tsx')
  const preloaded = outputs[`browser/${script}`].imports
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => `<link rel="modulepreload" href="/app/${path.slice('browser/'.length)}">`)
  const html = await readFile(join(root, page), 'utf8')
  const filled = html
    .replace('{{style}}', `/app/${nameOf('runtime/browser/style/style.css')}`)
    .replace('{{preloaded}}', preloaded.join('\n    '))
    .replace('{{script}}', `/app/${script}`)
  return new Map([...files, ['index.html', filled]])
}
