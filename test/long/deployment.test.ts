import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Miniflare } from 'miniflare'
import { parse } from 'smol-toml'
import { expect, onTestFinished, test } from 'vitest'
import { bundleBrowser } from '../../scripts/bundle-browser.js'
import { durableObjects, workerRules } from '../../scripts/run-worker.ts'
import { freshDirectory } from '../support/directory.ts'

const root = join(import.meta.dirname, '../..')
const pageFiles = join(root, 'dist/page-files.js')

/** Makes the files of the page where no build has left them. */
async function withPageFiles(): Promise<void> {
  if (existsSync(pageFiles)) return
  const made = `${pageFiles}.${process.pid}`
  await mkdir(dirname(pageFiles), { recursive: true })
  await writeFile(made, `export default ${JSON.stringify(Object.fromEntries(await bundleBrowser()))}\n`)
  await rename(made, pageFiles)
}

test('the script that wrangler would deploy is a gateway, and fits into the limits of Cloudflare', async () => {
  const directory = await freshDirectory()
  await withPageFiles()
  // Without the build: other tests may use what is there.
  const { build: _, main, ...settings } = parse(await readFile(join(root, 'wrangler.toml'), 'utf8'))
  const config = join(directory, 'wrangler.json')
  await writeFile(config, JSON.stringify({ ...settings, main: join(root, String(main)) }))
  const args = ['run', '--silent', 'wrangler', '--', 'deploy', '--config', config, '--dry-run', '--outdir', directory]
  const env = { ...process.env, CI: 'true', WRANGLER_SEND_METRICS: 'false', WRANGLER_LOG_PATH: directory }
  const { stdout } = await promisify(execFile)('npm', args, { cwd: root, env })
  const [, kilobytes] = /gzip: ([\d.]+) KiB/.exec(stdout) ?? []
  // 3 MB on the free plan (developers.cloudflare.com/workers/platform/limits, Worker size).
  expect(Number(kilobytes)).toBeLessThan(3 * 1024)
  for (const [binding, { className }] of Object.entries(durableObjects))
    expect(stdout).toContain(`env.${binding} (${className})`)

  const texts = (await readdir(directory)).filter((name) => name.endsWith('rapidoc-min.js'))
  const modules = await Promise.all(
    ['worker.js', ...texts].map(async (path) => ({
      ...{ type: path === 'worker.js' ? ('ESModule' as const) : ('Text' as const), path },
      contents: await readFile(join(directory, path), 'utf8'),
    })),
  )
  const token = 'the-admin-token-of-tests'
  const worker = new Miniflare({
    ...{ modules, durableObjects, ...(await workerRules()) },
    bindings: { FLEET_KEY: 'a secret of tests that is long enough', ADMIN_TOKEN: token },
  })
  onTestFinished(() => worker.dispose())
  const ask = async (path: string) =>
    fetch(new URL(path, await worker.ready), { headers: { authorization: `Bearer ${token}` } })
  expect(await (await ask('/v2/computes')).json()).toEqual([])
  expect((await ask('/')).headers.get('content-type')).toContain('text/html')
})
