import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import type { Project } from '../../src/model/project.ts'
import { hangMs } from './limits.ts'
import { portRanges } from './ports.ts'
import { TestService } from './service.ts'

const token = 'gateway-test-0123456789'
const projects = '/v2/compute/projects'

/** Ports of a compute, most of them of consoles. */
const manyConsoles = () => portRanges({ console: 180, udp: 16, vnc: 4 })

/** A gateway and three computes, all in processes of their own. */
export class GatewayLab {
  gateway!: TestService
  /** Registered by their addresses, as `a` and `b`. */
  a!: TestService
  b!: TestService
  /** Has joined by a tunnel. */
  far!: TestService
  farId = ''

  /** One for the tests of a file. */
  static forAll(): GatewayLab {
    const lab = new GatewayLab()
    beforeAll(() => lab.#start())
    afterAll(() => lab.#close())
    return lab
  }

  async #start(): Promise<void> {
    const embedded = { 'pc.engine': 'embedded' }
    // All clients of the tests are one.
    this.gateway = await TestService.startForAll({
      ...{ gateway: true, 'fleet.join_tokens': [token], 'rate_limit.per_s': 0 },
    })
    const { url } = this.gateway
    ;[this.a, this.b, this.far] = await Promise.all([
      TestService.startForAll({ ...embedded, ...manyConsoles() }),
      TestService.startForAll({ ...embedded, ...manyConsoles() }),
      TestService.startForAll({ ...embedded, ...manyConsoles(), 'join.url': url, 'join.token': token }),
    ])
    this.farId = (await readFile(join(this.far.data, 'compute-id'), 'utf8')).trim()
    for (const [compute_id, service] of [['a', this.a] as const, ['b', this.b] as const]) {
      const input = { compute_id, name: `compute ${compute_id}`, protocol: 'http', host: '127.0.0.1' }
      await this.gateway.call('POST', '/v2/computes', { ...input, port: portOf(service) })
    }
    await this.shows(this.farId, { connected: true })
  }

  async #close(): Promise<void> {
    await Promise.all([this.gateway, this.a, this.b, this.far].map((service) => service?.close()))
  }

  get computes(): readonly TestService[] {
    return [this.a, this.b, this.far]
  }

  /** Resolves when the gateway shows a compute so. */
  async shows(id: string, wanted: Partial<Compute>): Promise<void> {
    await vi.waitFor(
      async () => {
        const computes = await this.gateway.call<Compute[]>('GET', '/v2/computes')
        expect(computes.find(({ compute_id }) => compute_id === id)).toMatchObject(wanted)
      },
      { timeout: hangMs },
    )
  }

  /** A new project at a compute; its path. */
  async project(compute_id: string): Promise<string> {
    const input = { name: 'lab', project_id: randomUUID(), compute_id }
    await this.gateway.call('POST', projects, input)
    return `${projects}/${input.project_id}`
  }
}

export const portOf = (service: TestService): number => Number(new URL(service.url).port)

/** What asks a service or a gateway. */
export interface Asked {
  call<T>(method: string, path: string, body?: unknown): Promise<T>
}

/**
 * A hundred clients at once that create projects and nodes through a gateway: each has its project once, also those that two
 * ask for, and more than one of `computes` has some. They are deleted again.
 */
export async function serveManyClients(gateway: Asked, computes: readonly Asked[]): Promise<void> {
  // A compute that reports its processors busy may get none. What was placed within a minute reduces the room of the others, to less
  // than that of a busy one in the third round.
  for (let rounds = 1; (await servedBy(gateway, computes)) < 2; rounds++) expect(rounds).toBeLessThan(3)
}

/** One round of it; how many computes had some of the projects. */
async function servedBy(gateway: Asked, computes: readonly Asked[]): Promise<number> {
  const idsAt = async (asked: Asked) => (await asked.call<Project[]>('GET', projects)).map((it) => it.project_id)
  const before = await idsAt(gateway)
  // No more than one compute has ports for: a busy one leaves nearly all to the others.
  const ids = Array.from({ length: 80 }, () => randomUUID())
  // Twenty are asked for twice.
  await Promise.all(
    [...ids, ...ids.slice(0, 20)].map(async (project_id, client) => {
      await gateway.call('POST', projects, { name: 'lab', project_id })
      const nodes = `${projects}/${project_id}/pc/nodes`
      if (client < ids.length) await gateway.call('POST', nodes, { name: 'PC' })
      else await gateway.call('GET', nodes)
    }),
  )
  const known = new Set(before)
  const perCompute = await Promise.all(
    computes.map(async (compute) => (await idsAt(compute)).filter((id) => !known.has(id))),
  )
  expect(perCompute.flat().sort()).toEqual(ids.toSorted())
  const nodes = await Promise.all(ids.map((id) => gateway.call<unknown[]>('GET', `${projects}/${id}/pc/nodes`)))
  expect(nodes.map(({ length }) => length)).toEqual(ids.map(() => 1))
  await Promise.all(ids.map((id) => gateway.call('DELETE', `${projects}/${id}`)))
  expect(await idsAt(gateway)).toHaveLength(before.length)
  return perCompute.filter(({ length }) => length > 0).length
}

/** Patches the first ports of two pcs together, which are given by their paths. */
export async function patch(gateway: TestService, ...pcs: readonly [string, string]): Promise<Response> {
  return gateway.fetch('/v2/links', { method: 'POST', body: JSON.stringify(linkOf(...pcs)) })
}

/** What is sent for that. */
export function linkOf(...pcs: readonly [string, string]): { nodes: object[] } {
  const nodes = pcs.map((path) => {
    const [, project_id, node_id] = /projects\/([^/]+)\/pc\/nodes\/([^/]+)$/.exec(path) ?? []
    return { project_id, node_type: 'pc', node_id, adapter_number: 0, port_number: 0 }
  })
  return { nodes }
}
