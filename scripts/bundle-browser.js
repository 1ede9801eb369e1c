import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assistantPages } from './assistant-pages.js'
import { exampleLabs } from './example-lab.js'
import { licencesOf, packageOf } from './licences.js'

// JavaScript, as bundle.js, which uses it.

const root = join(import.meta.dirname, '..')
const page = 'runtime/browser/index.html'

/** For esbuild: a style sheet that a script imports as a text, for a part of the page that is loaded later. */
const styleTexts = {
  name: 'style-texts',
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path, with: { type } }) => {
      if (type !== 'text') return
      const { code } = await build.esbuild.transform(await readFile(path, 'utf8'), { loader: 'css', minify: true })
      return { contents: code.trim(), loader: 'text' }
    })
  },
}

/**
 * For esbuild: noVNC without the ciphers for the password of a screen: the page has none, so that noVNC never gets to use them. And without
 * its compression, which only a text for the clipboard needs, and H.264, which QEMU does not send.
 */
const smallScreens = {
  name: 'small-screens',
  setup(build) {
    build.onResolve({ filter: /\/deflator\.js$/ }, ({ importer }) =>
      /novnc[\\/]core/.test(importer) ? { path: join(root, 'runtime/browser/console/stored-deflate.ts') } : undefined,
    )
    build.onLoad({ filter: /novnc[\\/]core[\\/](ra2|crypto[\\/]crypto)\.js$/ }, () => ({
      contents: 'export default class { constructor() { throw new Error("This screen needs a password.") } }',
    }))
    build.onLoad({ filter: /novnc[\\/]core[\\/]decoders[\\/]h264\.js$/ }, () => ({
      contents: 'export class H264Context {}\nexport default class {}',
    }))
    build.onLoad({ filter: /novnc[\\/]core[\\/]util[\\/]browser\.js$/ }, async ({ path }) => {
      const asks = 'supportsWebCodecsH264Decode = await _checkWebCodecsH264DecodeSupport();'
      const source = await readFile(path, 'utf8')
      if (!source.includes(asks))
        throw new Error(`noVNC finds out in another way whether H.264 can be decoded: ${path}`)
      return { contents: source.replace(asks, '') }
    })
  },
}

/** The private members of xterm.js that the page and its add-on use by their names. */
const namedMembers = /^_(core|renderService|viewport|scrollableElement)$/

/** For esbuild: xterm.js with short names for its private members, `_name`, which are 5 % of what browsers load. */
const smallTerminals = {
  name: 'small-terminals',
  setup(build) {
    build.onLoad({ filter: /@xterm[\\/]xterm[\\/]lib[\\/]xterm\.mjs$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      const { code, mangleCache } = await build.esbuild.transform(source, {
        ...{ format: 'esm', minify: true, mangleProps: /^_[a-zA-Z]/, reserveProps: namedMembers, mangleCache: {} },
      })
      // Members that are named by a text would not be found any more.
      const quoted = [...source.matchAll(/["'`](_[a-zA-Z]\w*)["'`]/g)].map(([, name]) => name)
      const lost = quoted.find((name) => name in mangleCache && source.includes(`.${name}`))
      if (lost !== undefined) throw new Error(`xterm.js names ${lost} by a text: keep its name in bundle-browser.js`)
      return { contents: code, loader: 'js' }
    })
  },
}

/**
 * The files of the page for browsers, by name: scripts and style sheets, whose names have the digests of their contents, the licences of
 * the packages in them, and `index.html`, which names those of the first load.
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
    plugins: [exampleLabs, styleTexts, smallScreens, smallTerminals],
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
  const licences = await licencesOf(
    Object.keys(metafile.inputs)
      .map(packageOf)
      .filter((it) => it !== undefined),
  )
  const notice = `licences-${createHash('sha256').update(licences).digest('hex').slice(0, 8).toUpperCase()}.txt`
  const html = await readFile(join(root, page), 'utf8')
  const filled = html
    .replace('{{style}}', `/app/${nameOf('runtime/browser/style/style.css')}`)
    .replace('{{preloaded}}', preloaded.join('\n    '))
    .replace('{{script}}', `/app/${script}`)
    .replace('{{licences}}', `/app/${notice}`)
  return new Map([
    ...files,
    [notice, licences],
    ['index.html', filled],
    ['assistant-pages.json', await assistantPages()],
  ])
}
