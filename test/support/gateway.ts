import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createNodeAgent, type NodeAgentService } from '../../runtime/node/service/agent.ts'
import { loadConfig } from '../../runtime/node/service/config/load.ts'
import { type App, createApp } from '../../src/app.ts'
import { relayAnswer } from '../../src/fleet/forward/forward.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../src/fleet/gateway/gateway-agent.ts'
import { fleetMembers } from '../../src/fleet/members/fleet-members.ts'
import type { Member, PlacementStore } from '../../src/fleet/members/members.ts'
import type { Fleet } from '../../src/fleet/pool/fleet.ts'
import type { LocalHostAgent } from '../../src/host-agent.ts'
import { readHere } from '../../src/importers/readers.ts'
import { responseOf } from '../../src/lib/http/relayed-answer.ts'
import { headersFor } from '../../src/model/access/caller.ts'
import type { Access } from '../../src/server/access/access.ts'
import type { AppOptions } from '../../src/server/app-options.ts'
import { succeeded } from './calls.ts'
import { endsWithUs } from './ends-with-us.ts'
import { MemoryDigests, testHasher } from './memory-digests.ts'
import { MemoryPlacements } from './memory-placements.ts'
import { portArguments } from './ports.ts'

const quiet = () => {}
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

/** A compute of a gateway of tests; what is told of it can be changed. */
type TestMember = { -readonly [K in keyof Member]: Member[K] } & { agent: LocalHostAgent }

export interface TestGateway {
  readonly app: App
  readonly members: TestMember[]
  readonly placements: Map<string, string>
  readonly digests: MemoryDigests
  /** Tells the gateway that something of a member is another. */
  changed(): void
  fetch(method: string, path: string, body?: unknown, init?: RequestInit): Promise<Response>
  /** A request that must succeed; its JSON answer. */
  call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>
}

interface StartedAgent {
  readonly data: string
  readonly service: NodeAgentService
  /** The names of the files that it had then. */
  readonly files: string
}

/** Agents without anything in them that tests of this process gave back. */
const given: StartedAgent[] = []
const maxGiven = 2

/** A real host agent in this process, with the embedded pc. It may have served an earlier test, which left nothing. */
export async function startAgent(): Promise<LocalHostAgent> {
  const started = given.pop() ?? (await newAgent())
  onTestFinished(() => giveBack(started))
  return started.service.agent
}

const filesOf = async (data: string) => (await readdir(data, { recursive: true })).sort().join()

async function giveBack(started: StartedAgent): Promise<void> {
  const { data, service, files } = started
  const { projects } = service.agent
  for (const { project_id } of await projects.list('all')) {
    await projects.create({ project_id, name: 'to be removed' })
    await projects.remove(project_id)
  }
  if (given.length < maxGiven && (await filesOf(data)) === files) return void given.push(started)
  await service.close()
  await rm(data, { recursive: true, force: true })
}

async function newAgent(): Promise<StartedAgent> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-'))
  endsWithUs(data)
  const config = loadConfig({
    argv: ['--data', data, '--pc-engine', 'embedded', ...portArguments()],
    env: { XDG_CONFIG_HOME: data },
  })
  const service = await createNodeAgent({ config, log, diagnose: async () => ({ ok: true, checks: [] }) })
  return { data, service, files: await filesOf(data) }
}

/** A gateway in front of these agents, as `c0`, `c1` and so on. */
export function startGateway(
  agents: readonly LocalHostAgent[],
  more: Pick<GatewayOptions, 'keeping'> = {},
): TestGateway {
  const listeners = new Set<() => void>()
  const members = agents.map(
    (agent, index): TestMember => ({
      ...{ id: `c${index}`, name: `Compute ${index}`, agent, isConnected: true, acceptsProjects: true, weight: 1 },
      labels: [],
      disconnectedSince: undefined,
      load: { cpu_usage_percent: 10, memory_usage_percent: 10 },
      agentFor() {
        return this.agent
      },
      async forward({ request, path, body = request.body, caller }) {
        const { method, signal } = request
        const headers = { ...Object.fromEntries(request.headers), ...headersFor(caller) }
        const init = { method, headers, signal, ...(method !== 'GET' && { body, duplex: 'half' }) }
        const url = `http://localhost${path}${new URL(request.url).search}`
        const answer = await appOf({ agent: this.agent }).answerFromTunnel(new Request(url, init), noUpgrade)
        return relayAnswer('content' in answer ? responseOf(answer) : answer, this.name)
      },
    }),
  )
  const placements = new Map<string, string>()
  const digests = new MemoryDigests()
  const store: PlacementStore = {
    get: async (project) => placements.get(project),
    put: async (project, compute) => void placements.set(project, compute),
    remove: async (project) => void placements.delete(project),
  }
  const gateway = createGateway({
    members: {
      all: async () => members,
      find: async (id) => members.find((member) => member.id === id),
      watch(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    placements: store,
    digests: { store: digests, newHasher: testHasher },
    host: { version: '1.4.2', metrics: async () => [] },
    ...more,
  })
  onTestFinished(() => gateway.close())
  const app = appOf(gateway)
  const request = (method: string, path: string, body?: unknown, init?: RequestInit): Promise<Response> =>
    app.fetch(
      new Request(`http://localhost${path}`, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...init,
      }),
    )
  return {
    app,
    members,
    placements,
    digests,
    changed() {
      for (const listener of listeners) listener()
    },
    fetch: request,
    async call<T>(method: string, path: string, body?: unknown) {
      const answer = await request(method, path, body)
      return succeeded<T>(method, path, answer)
    },
  }
}

/** A gateway in front of the computes of a fleet. */
export function startFleetGateway(fleet: Fleet, access: Partial<Access> = {}): { app: App; gateway: Gateway } {
  const gateway = createGateway({
    members: fleetMembers(fleet),
    placements: new MemoryPlacements(),
    host: { version: '1.4.2', metrics: async () => [] },
  })
  onTestFinished(() => gateway.close())
  return { app: appOf(gateway, { fleet, access }), gateway }
}

const noUpgrade = () => {
  throw new Error('not here')
}

function appOf(
  { agent }: Pick<AppOptions, 'agent'>,
  { fleet, access }: { fleet?: Fleet; access?: Partial<Access> } = {},
): App {
  return createApp({
    agent,
    services: { fleet },
    version: '1.4.2',
    admission: {
      access: () => ({
        hosts: new Set(['localhost']),
        allowedOrigins: new Set(),
        user: '',
        password: '',
        token: '',
        ...access,
      }),
    },
    jsonBytes: 64 * 1024,
    aliases: {},
    runtime: {
      json: (body, status, headers) =>
        new Response(body, { status, headers: { 'Content-Type': 'application/json', ...headers } }),
      upgrade: noUpgrade,
      assets: async () => undefined,
      read: readHere,
      report: (error) => process.stderr.write(`${(error as Error).stack}\n`),
    },
  })
}
