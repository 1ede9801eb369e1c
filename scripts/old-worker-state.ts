import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { brotliCompressSync } from 'node:zlib'
import { build } from 'esbuild'
import { parse } from 'smol-toml'
import { program010 } from '../test/support/old-program.ts'
import { type OldWorkerState, oldBindings } from '../test/support/old-worker.ts'
import { runWorker, type WorkerOptions } from './run-worker.ts'

/**
 * Keeps what the Worker of an earlier commit stores, for the tests of upgrades: `node scripts/old-worker-state.ts COMMIT FILE`. That
 * Worker is run in workerd with computes, tokens and projects, and, if it has them, a lab and an organization. FILE becomes the JSON of its database files (base64) and of what
 * is in them, compressed with Brotli.
 */
const [commit, file] = process.argv.slice(2)
if (commit === undefined || file === undefined) throw new Error('usage: old-worker-state.ts COMMIT FILE')

const root = join(import.meta.dirname, '..')
const place = mkdtempSync(join(tmpdir(), 'patchbay-old-'))
const [tree, data] = [join(place, 'tree'), join(place, 'data')]
const services: ChildProcess[] = []
const credentials = { user: 'anna', password: 'geheim-geheim' }

/** The Worker of the commit. The pages are not in it: they are large, and of no use. */
async function oldWorker(): Promise<string> {
  execFileSync('git', ['worktree', 'add', '--detach', tree, commit as string], { cwd: root, stdio: 'inherit' })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  const { outputFiles } = await build({
    ...{
      absWorkingDir: tree,
      entryPoints: ['runtime/worker/worker.ts'],
      bundle: true,
      format: 'esm',
      target: 'es2023',
    },
    ...{ write: false, conditions: ['workerd', 'worker', 'import'], external: ['node:*', 'cloudflare:*'] },
    define: { PATCHBAY_VERSION: '"0.1.0"' },
    plugins: [
      {
        name: 'no pages',
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /\/(rapidoc-min|page-files)\.js$/ }, ({ path }) => ({ path, namespace: 'none' }))
          onLoad({ filter: /.*/, namespace: 'none' }, () => ({ contents: 'export default {}' }))
        },
      },
    ],
  })
  return outputFiles[0]?.text ?? ''
}

/** The Durable Objects of the commit, by their bindings. */
function oldObjects(): Required<WorkerOptions>['objects'] {
  const { durable_objects } = parse(readFileSync(join(tree, 'wrangler.toml'), 'utf8')) as unknown as {
    durable_objects: { bindings: { name: string; class_name: string }[] }
  }
  const { bindings } = durable_objects
  return Object.fromEntries(bindings.map(({ name, class_name }) => [name, { className: class_name, useSQLite: true }]))
}

/** A compute of release 0.1.0; its address and data directory. */
async function compute(name: string, ...flags: string[]): Promise<{ url: string; directory: string }> {
  const directory = join(place, name)
  const args = ['serve', '--port', '0', '--data', directory, '--pc-engine', 'embedded', ...flags]
  const env = { ...process.env, XDG_CONFIG_HOME: directory }
  const child = spawn(process.execPath, [await program010(), ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  services.push(child)
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /https?:\/\/\S+/.exec(line)?.[0]
    if (url !== undefined) return { url, directory }
  }
  throw new Error('the compute ended before it was ready')
}

try {
  const gateway = await runWorker({
    host: '127.0.0.1',
    port: 0,
    data,
    bindings: oldBindings,
    script: await oldWorker(),
    objects: oldObjects(),
  })
  const call = async <T>(
    method: string,
    path: string,
    body?: object,
    more: Record<string, string> = {},
  ): Promise<T> => {
    const headers = { authorization: `Bearer ${oldBindings.ADMIN_TOKEN}`, ...more }
    const answer = await fetch(gateway.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  const newToken = (name: string, more: object) =>
    call<{ token_id: string; token: string }>('POST', '/v2/tokens', { name, ...more })
  const newProject = async (name: string, compute_id: string) =>
    (await call<{ project_id: string }>('POST', '/v2/compute/projects', { name, compute_id })).project_id

  const newLab = async (): Promise<Required<OldWorkerState>['lab']> => {
    const { project_id } = await call<{ project_id: string }>('POST', '/v2/projects', { name: 'old lab' })
    const { name } = await call<{ name: string }>('POST', `/v2/projects/${project_id}/nodes`, {
      ...{ node_type: 'pc', compute_id: 'near', name: 'PC1' },
    })
    return { id: project_id, node: name }
  }
  const newOrganization = async (): Promise<Required<OldWorkerState>['organization']> => {
    const id = 'school'
    await call('POST', '/v2/organizations', { organization_id: id })
    const within = { 'x-patchbay-organization': id }
    await call('POST', '/v2/computes', { compute_id: 'near', name: 'The near one', ...address }, within)
    const { token } = await call<{ token: string }>('POST', '/v2/tokens', { name: 'class', role: 'operate' }, within)
    const project = { name: 'lab of the school', compute_id: 'near' }
    const { project_id } = await call<{ project_id: string }>('POST', '/v2/compute/projects', project, within)
    return { id, token, project: project_id }
  }

  const near = await compute('near', '--user', credentials.user, '--password', credentials.password)
  const port = Number(new URL(near.url).port)
  const address = { protocol: 'http', host: '127.0.0.1', port, ...credentials }
  await call('POST', '/v2/computes', { compute_id: 'near', name: 'The near one', ...address })
  await call('POST', '/v2/computes', { compute_id: 'away', protocol: 'https', host: '192.0.2.1', port: 3080 })
  const [operate, read] = [await newToken('ci', { role: 'operate' }), await newToken('viewer', { role: 'read' })]
  const revoked = await newToken('gone', { role: 'operate' })
  await call('DELETE', `/v2/tokens/${revoked.token_id}`)
  const joinToken = await newToken('lab', { purpose: 'join' })
  const joined = await compute('joined', '--join', gateway.url, '--join-token', joinToken.token)
  const joinedId = readFileSync(join(joined.directory, 'compute-id'), 'utf8').trim()
  for (;;) {
    const all = await call<{ compute_id: string; connected: boolean }[]>('GET', '/v2/computes')
    if (all.some(({ compute_id, connected }) => compute_id === joinedId && connected)) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const projects = { near: await newProject('near lab', 'near'), joined: await newProject('joined lab', joinedId) }
  await call('DELETE', `/v2/compute/projects/${await newProject('deleted lab', 'near')}`)
  const { paths } = await call<{ paths: Record<string, unknown> }>('GET', '/openapi.json')
  const more: Pick<OldWorkerState, 'lab' | 'organization'> = {
    ...('/v2/projects' in paths && { lab: await newLab() }),
    ...('/v2/organizations' in paths && { organization: await newOrganization() }),
  }
  const shown = await call<Record<string, unknown>[]>('GET', '/v2/computes')
  await gateway.close()

  const names = readdirSync(data, { recursive: true, withFileTypes: true }).filter((it) => it.isFile())
  const files = names.map(({ parentPath, name }): [string, string] => {
    const path = join(parentPath, name)
    return [path.slice(data.length + 1), readFileSync(path).toString('base64')]
  })
  const tokens = { operate: operate.token, read: read.token, revoked: revoked.token, join: joinToken.token }
  const kept = { joinedId, projects, tokens, credentials, shown, ...more }
  const state: OldWorkerState = { files: Object.fromEntries(files), ...kept }
  writeFileSync(file, brotliCompressSync(JSON.stringify(state)))
} finally {
  for (const service of services) service.kill('SIGTERM')
  await Promise.all(services.map((it) => it.exitCode ?? new Promise((resolve) => it.once('exit', resolve))))
  execFileSync('git', ['worktree', 'remove', '--force', tree], { cwd: root })
  rmSync(place, { recursive: true, force: true })
}
