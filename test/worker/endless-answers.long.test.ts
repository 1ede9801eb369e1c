import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { json, listening } from '../support/fleet.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const projects = '/v2/compute/projects'

/** A compute whose lists and errors never end; how many bytes were taken of each, when it was let go. */
async function endlessCompute() {
  const taken: Promise<number>[] = []
  const server = createServer((req, res) => {
    const path = req.url ?? ''
    if (path.startsWith('/v2/compute/capabilities'))
      return json(res, 200, { version: '0.1.0', platform: 'linux', node_types: [] })
    if (path.startsWith('/v2/compute/host')) return json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
    let bytes = 0
    const piece = Buffer.alloc(65_536, ' ')
    const write = () => {
      while (!res.destroyed) {
        bytes += piece.length
        if (!res.write(piece)) break
      }
    }
    taken.push(new Promise((resolve) => res.on('close', () => resolve(bytes))))
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.on('drain', write)
    write()
  })
  onTestFinished(() => void server.close().closeAllConnections())
  return { port: await listening(server), taken }
}

test('endless answers are cancelled after 4 MiB, and the error names the compute', async () => {
  const [gateway, ...computes] = await Promise.all([WorkerGateway.start(), ...[1, 2, 3, 4].map(endlessCompute)])
  for (const [index, { port }] of computes.entries())
    await gateway.call('POST', '/v2/computes', {
      ...{ compute_id: `c${index}`, name: `Compute ${index}`, protocol: 'http', host: '127.0.0.1', port },
    })
  const answers = await Promise.all([
    ...[1, 2, 3, 4].map(() => gateway.fetch('GET', projects)),
    ...computes.map((_, index) => gateway.fetch('GET', `/v2/computes/c${index}/iou/images`)),
  ])
  for (const answer of answers.slice(0, 4)) {
    expect([502, 503]).toContain(answer.status)
    const { message } = (await answer.json()) as { message: string }
    expect(message).toMatch(/more than 4194304 bytes|Too many large responses/)
    expect(answer.headers.get('x-patchbay-unreachable')?.split(', ')).toHaveLength(4)
  }
  for (const answer of answers.slice(4)) expect([502, 503]).toContain(answer.status)
  const taken = (await Promise.all(computes.map((it) => Promise.all(it.taken)))).flat()
  expect(taken.length).toBeGreaterThanOrEqual(8)
  // What sockets hold on both sides is not read.
  for (const bytes of taken) expect(bytes).toBeLessThan(16 << 20)
})
