import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'

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
    plugins: [docsScript],
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
