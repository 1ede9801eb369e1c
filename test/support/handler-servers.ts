import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../../runtime/node/os/log/log.ts'
import { createNodeAgent, type NodeAgentService } from '../../runtime/node/service/agent.ts'
import { loadConfig } from '../../runtime/node/service/config/load.ts'
import { httpTransport } from '../../runtime/node/service/fleet/http-transport.ts'
import { assetsWith } from '../../runtime/node/service/http/assets.ts'
import { runAs } from '../../runtime/node/service/http/caller.ts'
import { json, listen } from '../../runtime/node/service/http/server.ts'
import { WebSockets } from '../../runtime/node/service/http/websocket.ts'
import { Joiner, type JoinerOptions } from '../../runtime/node/service/join/joiner.ts'
import { bundleBrowser } from '../../scripts/bundle-browser.js'
import { type App, createApp } from '../../src/app.ts'
import { checkedAgent } from '../../src/compute/checked-agent.ts'
import { ApplianceVmService } from '../../src/fleet/appliance-vm/appliance-vm.ts'
import { RemoteEngine } from '../../src/fleet/appliance-vm/remote-engine.ts'
import { Fleet } from '../../src/fleet/pool/fleet.ts'
import { readHere } from '../../src/importers/readers.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import type { AppOptions } from '../../src/server/app-options.ts'
import { composeCompute } from '../../src/server/compose.ts'
import { assetOf } from '../../src/server/http/assets.ts'
import { niceDynamips, shortBounds } from './dynamips.ts'
import { MemoryAppliance } from './memory-appliance.ts'
import { memoryPorts } from './memory-labs.ts'
import { MemoryRegistry } from './memory-registry.ts'
import { leasePorts } from './port-leases.ts'
import { virtualBoxWorld } from './virtualbox.ts'

/**
 * The servers in Node that handler tests ask: a process of its own, which `setup.ts` starts. It runs hundreds of programs, and starting
 * one takes a large process, such as that of vitest, many times longer.
 */

/** What it is asked for, by its arguments. */
export type Wanted = readonly ['service'] | readonly ['computes', count: string]

/** What it says when it is ready. */
export interface Served {
  /** Of the service, if that was wanted. */
  readonly url: string
  readonly computes: readonly ComputeRecord[]
}

/** Has a compute join a gateway. */
export interface JoinOrder {
  readonly url: string
  readonly token: string
  readonly compute_id: string
}

/** How many VMs the hypervisor of the tests has: `VM 1` and so on, each of 512 MB and with 8 adapters at most. */
const vmsOfHandlers = 12

/** What the computes behind workerd want to hear. */
const credentials = { user: 'anna', password: 'geheim-geheim' }

const quiet = () => {}
const silent: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

type Undo = () => Promise<unknown>

async function main([what = '', count = '']: readonly string[]): Promise<void> {
  const undo: Undo[] = []
  const end = async () => {
    for (const step of undo.reverse()) await step()
    process.exit(0)
  }
  process.once('disconnect', () => void end())
  const tell = (served: Served) => process.send?.(served)
  if (what === 'service') return void tell({ url: await node(undo), computes: [] })
  const computes = await behind(undo, Number(count))
  process.on('message', ({ url, token, compute_id }: JoinOrder) => {
    const app = computes.find(({ record }) => record.compute_id === compute_id)?.app
    const fetch: JoinerOptions['fetch'] = async (request, upgrade) =>
      app?.answerFromTunnel(request, upgrade) ?? new Response(null, { status: 503 })
    const who = { version: '0.0.0-test', compute_id, name: compute_id }
    const joiner = new Joiner({ url, token, who, fetch, log: silent })
    undo.push(async () => joiner.close())
  })
  tell({ url: '', computes: computes.map(({ record }) => record) })
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
      agent: checkedAgent(agent),
      fetch: (request) => app.answerOwnRequest(request),
    },
  })
  const engines = { remote: new RemoteEngine(fleet) }
  const appliance = await ApplianceVmService.open({ fleet, engines, store: new MemoryAppliance() })
  undo.push(async () => {
    await appliance.close()
    await fleet.close()
    close()
  })
  const { labs, services } = await composeCompute(fleet, memoryPorts())
  undo.push(() => labs.shutdown())
  const files = await bundleBrowser()
  const { app, url } = await serve(
    { agent, services: { ...services, appliance } },
    { user: '', password: '' },
    undo,
    files,
  )
  return url
}

/** The app in Node, at an address of its own. */
async function serve(
  own: Pick<AppOptions, 'agent' | 'services'>,
  credentials: { user: string; password: string },
  undo: Undo[],
  /** The page of the present sources, whatever was built before; a gateway has one of its own. */
  files: ReadonlyMap<string, string> = new Map(),
): Promise<{ app: App; url: string }> {
  const webSockets = new WebSockets()
  const read = assetsWith('')
  const app = createApp({
    ...own,
    version: '0.0.0-test',
    admission: {
      access: () => ({
        hosts: new Set(['127.0.0.1', 'localhost']),
        allowedOrigins: new Set(['https://lab.example']),
        ...credentials,
        token: '',
      }),
    },
    jsonBytes: 64 * 1024,
    aliases: { vpcs: 'pc' },
    runtime: {
      runAs,
      json,
      read: readHere,
      upgrade: webSockets.upgrade,
      async assets(name) {
        const text = files.get(name)
        return text === undefined ? read(name) : assetOf(name, text)
      },
      report: (error) => process.stderr.write(`${(error as Error).stack}\n`),
    },
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

await main(process.argv.slice(2))
