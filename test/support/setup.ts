import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { build } from 'esbuild'
import { Miniflare } from 'miniflare'
import type { TestProject } from 'vitest/node'
import { browserFiles } from '../../scripts/bundle-worker.ts'
import { modulesOf } from '../../scripts/run-worker.ts'
import type { JoinOrder, Served, Wanted } from './handler-servers.ts'
import { realWorker } from './real-worker.ts'

declare module 'vitest' {
  interface ProvidedContext {
    baseUrl: string
    isWorker: boolean
    computes: number
    /** Whether the gateway is the Worker itself, and not only its app. */
    isRealWorker: boolean
  }
}

/** Computes behind the Worker, and behind the app in workerd. */
const ofWorker = Number(process.env.TEST_COMPUTES ?? 2)
const ofApp = 2
/** Whether those of the Worker join it, and are asked by their tunnels. */
const areJoining = process.env.TEST_JOINED === 'yes'

type Undo = () => Promise<unknown>

/** Starts what the project is named after, over a real host agent, and leaves its address for the test files. */
export async function setup(project: TestProject): Promise<Undo> {
  const undo: Undo[] = []
  const isRealWorker = project.name === 'workerd'
  const isWorker = isRealWorker || project.name === 'app'
  project.provide('isWorker', isWorker)
  project.provide('isRealWorker', isRealWorker)
  project.provide('computes', isRealWorker ? ofWorker : isWorker ? ofApp : 1)
  project.provide(
    'baseUrl',
    await (isRealWorker ? worker(undo) : isWorker ? appInWorkerd(undo) : (await servers(undo, 'service')).url),
  )
  return async () => {
    for (const step of undo.reverse()) await step()
  }
}

/** Starts the servers in Node, in a process that ends with this one. */
async function servers(undo: Undo[], ...wanted: Wanted): Promise<Served & { join(order: JoinOrder): void }> {
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: join(import.meta.dirname, '../../node_modules/.cache/node-compile'),
  }
  // The options of this process are of vitest.
  const child = fork(join(import.meta.dirname, 'handler-servers.ts'), wanted, { execArgv: [], env })
  undo.push(async () => {
    const gone = once(child, 'exit')
    child.disconnect()
    await gone
  })
  const over = once(child, 'exit').then(([code]) => {
    throw new Error(`the servers of handler tests ended with ${code}`)
  })
  over.catch(() => {})
  const [served] = (await Promise.race([once(child, 'message'), over])) as [Served]
  return { ...served, join: (order) => void child.send(order) }
}

/** The gateway's Worker, in front of as many computes as `TEST_COMPUTES` says. */
async function worker(undo: Undo[]): Promise<string> {
  const { computes, join } = await servers(undo, 'computes', String(ofWorker))
  const running = await realWorker(computes, areJoining)
  undo.push(() => running.close())
  if (areJoining) await running.joined(({ compute_id }, token) => join({ url: running.url, token, compute_id }))
  return running.url
}

/** The app in workerd, with what the Worker does not have: a gateway in front of two computes, and an appliance VM. */
async function appInWorkerd(undo: Undo[]): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'worker.ts')],
    bundle: true,
    format: 'esm',
    target: 'es2023',
    write: false,
    conditions: ['workerd', 'worker', 'import'],
    external: ['node:*', 'cloudflare:*'],
    plugins: [browserFiles],
  })
  const mf = new Miniflare({
    ...modulesOf(outputFiles[0]?.text ?? '', `export { default } from './worker.js'`),
    compatibilityDate: '2026-07-01',
    bindings: { COMPUTES: [...(await servers(undo, 'computes', String(ofApp))).computes] },
  })
  undo.push(() => mf.dispose())
  return (await mf.ready).href.replace(/\/$/, '')
}
