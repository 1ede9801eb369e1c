import { pageFile } from '../../runtime/worker/shared/page-files.ts'
import { socketTransport, upgrade } from '../../runtime/worker/shared/sockets.ts'
import { type App, createApp } from '../../src/app.ts'
import { RemoteHostAgent } from '../../src/compute/remote/remote-host-agent.ts'
import type { Send } from '../../src/compute/remote/transport.ts'
import { fetchTransport } from '../../src/compute/remote/transport.ts'
import { ApplianceVmService } from '../../src/fleet/appliance-vm/appliance-vm.ts'
import { RemoteEngine } from '../../src/fleet/appliance-vm/remote-engine.ts'
import { createGateway } from '../../src/fleet/gateway/gateway-agent.ts'
import { peersOfNodes } from '../../src/fleet/link-check/peer-address.ts'
import { fleetMembers } from '../../src/fleet/members/fleet-members.ts'
import type { FleetMembers } from '../../src/fleet/members/members.ts'
import { Fleet } from '../../src/fleet/pool/fleet.ts'
import type { EventAgent, HostAgent } from '../../src/host-agent.ts'
import { readHere } from '../../src/importers/readers.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import { assetOf } from '../../src/server/http/assets.ts'
import { MemoryAppliance } from './memory-appliance.ts'
import { MemoryPlacements } from './memory-placements.ts'
import { MemoryRegistry } from './memory-registry.ts'

/** The app in workerd, over computes that are reached by HTTP. */
interface Env {
  readonly COMPUTES: readonly ComputeRecord[]
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
    healthChecks: false as const,
  }
  // Apart from the fleet that tests see.
  const openBehind = () => Fleet.open({ ...common, registry: new MemoryRegistry(env.COMPUTES) })
  const behind = await openBehind()
  const placements = new MemoryPlacements()
  const host = { version: '0.0.0-test', metrics: async () => [] }
  // New for every request: a request must not wait for a promise of another one, which ends with that.
  const gatewayOf = (fleet: Fleet) => createGateway({ members: connected(fleet), placements, host })
  const fleet = await Fleet.open({
    ...common,
    registry: new MemoryRegistry(),
    local: {
      name: 'this',
      address: () => ({ protocol: 'http', host: '127.0.0.1', port: 3080 }),
      user: null,
      agent: agentInside(
        (request) => opened.answerOwnRequest(request),
        gatewayOf(behind).agent({
          caller: { isDirect: false, mayExecute: false },
          noteUnreachable() {},
          noteCompute() {},
          notes: {},
        }).host,
      ),
      fetch: (request) => opened.answerOwnRequest(request),
    },
  })
  const engines = { remote: new RemoteEngine(fleet) }
  const opened: App = createApp({
    agent(asker) {
      // A feed listens to its computes, and reads those that come: it must not hear of those that other requests connect, as it would
      // read them in such a request, with which its reading ends.
      const events: EventAgent = {
        open: async (feed) =>
          gatewayOf(await openBehind())
            .agent(asker)
            .events.open(feed),
      }
      return Object.defineProperty(gatewayOf(behind).agent(asker), 'events', { value: events })
    },
    services: {
      peers: (ends) => peersOfNodes(behind, gatewayOf(behind).locator)(ends),
      fleet,
      appliance: await ApplianceVmService.open({ fleet, engines, store: new MemoryAppliance() }),
    },
    version: '0.0.0-test',
    admission: {
      access: () => ({
        hosts: new Set(['127.0.0.1', 'localhost']),
        allowedOrigins: new Set(['https://lab.example']),
        user: '',
        password: '',
        token: '',
      }),
    },
    jsonBytes: 64 * 1024,
    aliases: { vpcs: 'pc' },
    runtime: {
      read: readHere,
      json: (body, status, headers) =>
        new Response(body, { status, headers: { 'Content-Type': 'application/json', ...headers } }),
      upgrade,
      async assets(name) {
        const text = name === 'rapidoc-min.js' ? '// the script of the reference page' : pageFile(name)
        return text === undefined ? undefined : assetOf(name, text)
      },
      // biome-ignore lint/suspicious/noConsole: the only way out of a worker
      report: (error) => console.error(error),
    },
  })
  return opened
}

/** The computes of a fleet without health checks, which connects nothing by itself. */
function connected(fleet: Fleet): FleetMembers {
  const members = fleetMembers(fleet)
  return {
    ...members,
    async all() {
      const ids = (await fleet.list()).map(({ compute_id }) => compute_id)
      await Promise.allSettled(ids.map((id) => fleet.connect(id)))
      return members.all()
    },
    async find(id) {
      await fleet.connect(id).catch(() => {})
      return members.find(id)
    },
  }
}

/** An agent that asks an app in this process. */
function agentInside(inside: (request: Request) => Promise<Response>, host: HostAgent['host']): HostAgent {
  const send: Send = ({ method, path, headers, body, signal }) => {
    const init = { method, headers, signal, ...(body !== null && { body, duplex: 'half' }) }
    return inside(new Request(`http://localhost${path}`, init))
  }
  return { ...new RemoteHostAgent({ name: 'this', send }), host }
}
