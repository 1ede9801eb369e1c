import { readFile } from 'node:fs/promises'
import { build } from 'esbuild'

/** The gateway's Worker as one module of text, as wrangler bundles it. */
export async function bundleWorker(): Promise<string> {
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
  const { outputFiles } = await build({
    entryPoints: ['runtime/worker/worker.ts'],
    bundle: true,
    format: 'esm',
    target: 'es2023',
    write: false,
    minifySyntax: true,
    conditions: ['workerd', 'worker', 'import'],
    external: ['node:*', 'cloudflare:*'],
    define: { PATCHBAY_VERSION: JSON.stringify(version) },
  })
  return outputFiles[0]?.text ?? ''
}
