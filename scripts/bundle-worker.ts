import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { bundleBrowser } from './bundle-browser.js'

const root = join(import.meta.dirname, '..')

export interface BundleOptions {
  /** That it shows, if not that of the package. */
  readonly version?: string
  /** A module that has the Worker in it, if not the Worker itself. */
  readonly entry?: string
}

/** The gateway's Worker as one module of text, as wrangler bundles it. */
export async function bundleWorker({ version, entry }: BundleOptions = {}): Promise<string> {
  const ours = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [entry ?? 'runtime/worker/worker.ts'],
    bundle: true,
    format: 'esm',
    target: 'es2023',
    write: false,
    minifySyntax: true,
    conditions: ['workerd', 'worker', 'import'],
    external: ['node:*', 'cloudflare:*'],
    plugins: [docsScript, browserFiles],
    define: { PATCHBAY_VERSION: JSON.stringify(version ?? ours.version) },
  })
  return outputFiles[0]?.text ?? ''
}

/** The script of the reference page is a text, as a rule of wrangler.toml has it. */
const docsScript: Plugin = {
  name: 'docs script',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]rapidoc-min\.js$/ }, async ({ path }) => ({
      contents: await readFile(path, 'utf8'),
      loader: 'text',
    }))
  },
}

let page: ReturnType<typeof bundleBrowser> | undefined

/** The files of the page, as `npm run build` leaves them for wrangler, made once of the present sources. */
export const browserFiles: Plugin = {
  name: 'browser files',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/dist\/page-files\.js$/ }, () => ({ path: 'page-files.js', namespace: 'browser' }))
    onLoad({ filter: /./, namespace: 'browser' }, async () => {
      page ??= bundleBrowser()
      return { contents: JSON.stringify(Object.fromEntries(await page)), loader: 'json' }
    })
  },
}
