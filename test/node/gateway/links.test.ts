import { expect, test } from 'vitest'
import type { LocalHostAgent } from '../../../src/host-agent.ts'
import { ApiError, conflict } from '../../../src/lib/errors/api-error.ts'
import { startGateway } from '../../support/gateway.ts'

/** A compute whose ports can be attached to; what was done is kept. `offered`: the UDP ports that it offers first. */
function compute(attach: () => Promise<void> = async () => {}, offered: number[] = []) {
  const done: string[] = []
  const released: number[] = []
  let port = 20_000
  const agent = {
    projects: {
      async reserveUdpPort() {
        done.push('reserve')
        return offered.shift() ?? port++
      },
      async releaseUdpPort(_: string, udp_port: number) {
        done.push('release')
        released.push(udp_port)
      },
    },
    nodes: {
      get: async () => ({}),
      nioState: () => Promise.reject(new ApiError(404, 'nothing is attached')),
      async attachNio(_: unknown, __: unknown, nio: unknown) {
        done.push('attach')
        await attach()
        return nio
      },
      async detachNio() {
        done.push('detach')
      },
    },
  } as unknown as LocalHostAgent
  return { agent, done, released }
}

function linker(agent: LocalHostAgent) {
  const gateway = startGateway([agent])
  const project_id = crypto.randomUUID()
  gateway.placements.set(project_id, 'c0')
  const nodes = [1, 2].map((number) => ({
    ...{ project_id, node_type: 'pc', adapter_number: 0, port_number: 0 },
    node_id: `7a2f0000-0000-4000-8000-00000000000${number}`,
  }))
  return () => gateway.fetch('POST', '/v2/links', { nodes })
}

test('of two requests for one port one is refused, and the other makes the link', async () => {
  let go = () => {}
  const mayAttach = new Promise<void>((resolve) => {
    go = resolve
  })
  const { agent, done } = compute(() => mayAttach)
  const link = linker(agent)
  const first = link()
  expect((await link()).status).toBe(409)
  go()
  expect((await first).status).toBe(201)
  expect(done).toEqual(['reserve', 'reserve', 'attach', 'attach'])
  expect((await link()).status).toBe(201)
})

test('after a failure only NIOs are detached that the compute did not refuse', async () => {
  const refusing = compute(() => Promise.reject(conflict('no')))
  expect((await linker(refusing.agent)()).status).toBe(409)
  expect(refusing.done).toEqual(['reserve', 'reserve', 'attach', 'release', 'release'])
  const lost = compute(() => Promise.reject(new ApiError(504, 'it went away')))
  expect((await linker(lost.agent)()).status).toBe(504)
  expect(lost.done).toEqual(['reserve', 'reserve', 'attach', 'detach', 'release', 'release'])
})

test('a failed link releases each port once, also when both computes had offered the same port', async () => {
  const { agent, released } = compute(() => Promise.reject(conflict('no')), [20_001, 20_001, 20_002])
  expect((await linker(agent)()).status).toBe(409)
  // One of each compute, of the same number, and the one that was offered instead.
  expect(released).toEqual([20_001, 20_002, 20_001])
})
