import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { Miniflare } from 'miniflare'
import type { TestProject } from 'vitest/node'
import { createNodeAgent, type NodeAgentService } from '../../runtime/node/agent.ts'
import { loadConfig } from '../../runtime/node/config/load.ts'
import { httpTransport } from '../../runtime/node/fleet/http-transport.ts'
import { assetsWith } from '../../runtime/node/http/assets.ts'
import { runAs } from '../../runtime/node/http/caller.ts'
import { json, listen } from '../../runtime/node/http/server.ts'
import { WebSockets } from '../../runtime/node/http/websocket.ts'
import { Joiner, type JoinerOptions } from '../../runtime/node/join/joiner.ts'
import type { Log } from '../../runtime/node/log/log.ts'
import { bundleBrowser } from '../../scripts/bundle-browser.js'
import { browserFiles } from '../../scripts/bundle-worker.ts'
import { type App, type AppOptions, createApp } from '../../src/app.ts'
import { ApplianceVmService } from '../../src/fleet/appliance-vm.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { RemoteEngine } from '../../src/fleet/remote-engine.ts'
import { assetOf } from '../../src/http/assets.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import { niceDynamips, shortBounds } from './dynamips.ts'
import { MemoryAppliance } from './memory-appliance.ts'
import { memoryLabs } from './memory-labs.ts'
import { MemoryRegistry } from './memory-registry.ts'
import { leasePorts } from './port-leases.ts'
import { realWorker } from './real-worker.ts'
import { virtualBoxWorld } from './virtualbox.ts'

declare module 'vitest' {
  interface ProvidedContext {
    baseUrl: string
    isWorker: boolean
    computes: number
    /** Whether the gateway is the Worker itself, and not only its app. */
    isRealWorker: boolean
  }
}

/** How many VMs the hypervisor of the tests has: `VM 1` and so on, each of 512 MB and with 8 adapters at most. */
const vmsOfHandlers = 12

/** Computes behind the Worker, and behind the app in workerd. */
const ofWorker = Number(process.env.TEST_COMPUTES ?? 2)
const ofApp = 2
/** Whether those of the Worker join it, and are asked by their tunnels. */
const areJoining = process.env.TEST_JOINED === 'yes'

/** What the computes behind workerd want to hear. */
const credentials = { user: 'anna', password: 'geheim-geheim' }

const quiet = () => {}
const silent: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

type Undo = () => Promise<unknown>

/** Of the present sources, whatever was built before. */
let page: ReturnType<typeof bundleBrowser> | undefined

/** Starts what the project is named after, over a real host agent, and leaves its address for the test files. */
export async function setup(project: TestProject): Promise<Undo> {
  const undo: Undo[] = []
  const isRealWorker = project.name === 'workerd'
  const isWorker = isRealWorker || project.name === 'app'
  project.provide('isWorker', isWorker)
  project.provide('isRealWorker', isRealWorker)
  project.provide('computes', isRealWorker ? ofWorker : isWorker ? ofApp : 1)
  project.provide('baseUrl', await (isRealWorker ? worker(undo) : isWorker ? appInWorkerd(undo) : node(undo)))
  return async () => {
    for (const step of undo.reverse()) await step()
  }
}

/** With a thousand ports, or a part of so many: 400 are of consoles, 100 of screens. */
async function hostAgent(undo: Undo[], part = 1): Promise<NodeAgentService> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-handlers-'))
  undo.push(() => rm(data, { recursive: true, force: true }))
  const range = (length: number): string => {
    const count = Math.ceil(length * part)
    const { first } = leasePorts(count)
    return `${first}-${first + count - 1}`
  }
  const ranges = [
    `--console-port-range=${range(400)}`,
    `--udp-port-range=${range(500)}`,
    `--vnc-port-range=${range(100)}`,
  ]
  // What comes by a gateway is outside local mode, where no device may be used and no UDP link made that is not named.
  ranges.push('--allowed-interfaces=*', '--udp-peers=127.0.0.1,::1')
  const dynamips = await niceDynamips(data)
  const more = dynamips === undefined ? [] : [`--dynamips-path=${dynamips}`]
  const { world, path } = await virtualBoxWorld(data)
  undo.push(async () => world.end())
  for (let number = 1; number <= vmsOfHandlers; number++) world.add(`VM ${number}`)
  more.push('--hypervisor-driver=virtualbox', `--hypervisor-vboxmanage-path=${path}`)
  const config = loadConfig({
    argv: ['--data', data, '--pc-engine', 'embedded', ...ranges, ...more],
    env: { XDG_CONFIG_HOME: data },
  })
  const service = await createNodeAgent({
    ...{ config, log: silent, timeouts: { dynamips: { ...shortBounds } } },
    diagnose: async () => ({ ok: true, checks: [] }),
  })
  undo.push(() => service.close())
  return service
}

async function node(undo: Undo[]): Promise<string> {
  const { agent } = await hostAgent(undo)
  const { transport, close } = httpTransport()
  const fleet = await Fleet.open({
    registry: new MemoryRegistry(),
    transport,
    version: '0.0.0-test',
    local: {
      name: 'this',
      address: () => ({ protocol: 'http', host: '127.0.0.1', port: 3080 }),
      user: null,
      host: agent.host,
      fetch: (request) => app.inside(request),
    },
  })
  const engines = { remote: new RemoteEngine(fleet) }
  const appliance = await ApplianceVmService.open({ fleet, engines, store: new MemoryAppliance() })
  undo.push(async () => {
    await appliance.close()
    await fleet.close()
    close()
  })
  const labs = await memoryLabs(fleet)
  undo.push(() => labs.shutdown())
  const { app, url } = await serve({ agent, fleet, appliance, labs }, { user: '', password: '' }, undo)
  return url
}

/** The app in Node, at an address of its own. */
async function serve(
  own: Pick<AppOptions, 'agent' | 'fleet' | 'appliance' | 'labs'>,
  credentials: { user: string; password: string },
  undo: Undo[],
): Promise<{ app: App; url: string }> {
  const webSockets = new WebSockets()
  page ??= bundleBrowser()
  const files = await page
  const read = assetsWith('')
  const app = createApp({
    ...own,
    within: runAs,
    version: '0.0.0-test',
    access: () => ({
      hosts: new Set(['127.0.0.1', 'localhost']),
      allowedOrigins: new Set(['https://lab.example']),
      ...credentials,
      token: '',
    }),
    jsonBytes: 64 * 1024,
    aliases: { vpcs: 'pc' },
    json,
    upgrade: webSockets.upgrade,
    async assets(name) {
      const text = files.get(name)
      return text === undefined ? read(name) : assetOf(name, text)
    },
    report: (error) => process.stderr.write(`${(error as Error).stack}\n`),
  })
  const server = await listen({
    host: '127.0.0.1',
    port: 0,
    headerTimeoutMs: 5000,
    bodyTimeoutMs: 5000,
    app,
    webSockets,
  })
  undo.push(() => server.close())
  return { app, url: server.url }
}

/** Computes in Node. */
function behind(undo: Undo[], count: number): Promise<{ app: App; record: ComputeRecord }[]> {
  const started = Array.from({ length: count }, async (_, index) => {
    const { agent } = await hostAgent(undo, 1 / count)
    const { app, url } = await serve({ agent }, credentials, undo)
    const { hostname: host, port } = new URL(url)
    const address = { protocol: 'http' as const, host, port: Number(port), ...credentials }
    return { app, record: { compute_id: `c${index}`, name: null, ...address } }
  })
  return Promise.all(started)
}

/** The gateway's Worker, in front of as many computes as `TEST_COMPUTES` says. */
async function worker(undo: Undo[]): Promise<string> {
  const computes = await behind(undo, ofWorker)
  const running = await realWorker(
    computes.map(({ record }) => record),
    areJoining,
  )
  undo.push(() => running.close())
  if (areJoining)
    await running.joined(({ compute_id }, token) => {
      const app = computes.find(({ record }) => record.compute_id === compute_id)?.app
      const fetch: JoinerOptions['fetch'] = async (request, upgrade) =>
        app?.throughTunnel(request, upgrade) ?? new Response(null, { status: 503 })
      const who = { version: '0.0.0-test', compute_id, name: compute_id }
      const joiner = new Joiner({ url: running.url, token, who, fetch, log: silent })
      undo.push(() => joiner.close())
    })
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
    modules: [{ type: 'ESModule', path: 'worker.js', contents: outputFiles[0]?.text ?? '' }],
    compatibilityDate: '2026-07-01',
    bindings: { COMPUTES: (await behind(undo, ofApp)).map(({ record }) => record) },
  })
  undo.push(() => mf.dispose())
  return (await mf.ready).href.replace(/\/$/, '')
}
