import { socketTransport, upgrade } from '../../runtime/worker/sockets.ts'
import { type App, createApp } from '../../src/app.ts'
import { agentOf } from '../../src/client/agent-of.ts'
import { ApplianceVm } from '../../src/fleet/appliance-vm.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { RemoteEngine } from '../../src/fleet/remote-engine.ts'
import { fetchTransport } from '../../src/fleet/transport.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import { MemoryAppliance } from './memory-appliance.ts'
import { MemoryRegistry } from './memory-registry.ts'

/** The app in workerd, over a compute that is reached by HTTP. */
interface Env {
  readonly COMPUTE: ComputeRecord
}

let app: Promise<App> | undefined

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    app ??= open(env)
    return (await app).fetch(request)
  },
}

async function open(env: Env): Promise<App> {
  const common = {
    transport: fetchTransport((url, init) => fetch(url, init)),
    sockets: socketTransport((url, init) => fetch(url, init)),
    version: '0.0.0-test',
    // What a request of a worker began ends with it.
    upkeep: false,
  }
  // Apart from the fleet that tests see.
  const behind = await Fleet.open({ ...common, registry: new MemoryRegistry([env.COMPUTE]) })
  const agent = agentOf(behind, env.COMPUTE.compute_id)
  const fleet = await Fleet.open({
    ...common,
    registry: new MemoryRegistry(),
    local: {
      name: 'this',
      address: () => ({ protocol: 'http', host: '127.0.0.1', port: 3080 }),
      user: null,
      host: agent.host,
      fetch: (request) => opened.inside(request),
    },
  })
  const engines = { remote: new RemoteEngine(fleet) }
  const opened: App = createApp({
    agent,
    fleet,
    appliance: await ApplianceVm.open({ fleet, engines, store: new MemoryAppliance() }),
    version: '0.0.0-test',
    access: () => ({
      hosts: new Set(['127.0.0.1', 'localhost']),
      allowedOrigins: new Set(['https://lab.example']),
      user: '',
      password: '',
      token: '',
    }),
    jsonBytes: 64 * 1024,
    aliases: { vpcs: 'pc' },
    json: (body, status, headers) =>
      new Response(body, { status, headers: { 'Content-Type': 'application/json', ...headers } }),
    upgrade,
    docsScript: async () => '// the script of the reference page',
    // biome-ignore lint/suspicious/noConsole: the only way out of a worker
    report: (error) => console.error(error),
  })
  return opened
}
