import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { LabProject } from '../../src/model/lab/project.ts'
import { json, listening } from '../support/fleet.ts'
import { hangMs } from '../support/limits.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const bucket = 'ARCHIVES'

/** A compute whose projects have one file, which it sends as `lie` does, at its first request. */
async function computeWith(lie: (res: ServerResponse) => void) {
  const file = { asked: 0, left: 0 }
  const server = createServer((req, res) => {
    const path = req.url?.split('?')[0] ?? ''
    const [, id = ''] = /^\/v2\/compute\/projects\/([^/]+)/.exec(path) ?? []
    const shown = { project_id: id, name: 'lab', path: '/x', location: '/', temporary: false, variables: null }
    res.setHeader('X-Route', '/')
    if (path === '/v2/compute/capabilities')
      return json(res, 200, { version: '0.1.0', platform: 'linux', node_types: [] })
    if (path === '/v2/compute/load') return json(res, 200, { cpu_usage_percent: 1, memory_usage_percent: 1 })
    if (path === '/v2/compute/projects' && req.method === 'GET') return json(res, 200, [])
    if (path === '/v2/compute/projects') {
      let body = ''
      req.on('data', (data) => (body += data))
      return req.on('end', () => json(res, 201, { ...shown, ...JSON.parse(body), path: '/x' }))
    }
    if (path.endsWith('/close')) return res.writeHead(204).end()
    if (path.endsWith('/files')) return json(res, 200, [{ path: 'big' }])
    file.asked += 1
    if (!path.endsWith('/files/big') || file.asked > 1) {
      res.setHeader('X-Patchbay-Error', 'no-such-project')
      return json(res, 404, { message: 'There is nothing', status: 404 })
    }
    res.on('close', () => (file.left += 1))
    lie(res)
  })
  onTestFinished(() => void server.close().closeAllConnections())
  return { port: await listening(server), file }
}

test(
  'an archive of a compute that is silent, or lies about a file, leaves nothing in R2 and the lab as it was',
  async () => {
    const size = 70 * 2 ** 30
    const [gateway, silent, endless] = await Promise.all([
      WorkerGateway.start({ RATE_PER_S: '0' }, [bucket]),
      // More than a part of an upload to R2.
      computeWith((res) => void res.writeHead(200, { 'Content-Length': size / 1024 }).write(randomBytes(20 << 20))),
      computeWith((res) => {
        const zeros = Buffer.alloc(65_536)
        const write = () => {
          while (!res.destroyed && res.write(zeros));
        }
        res.writeHead(200, { 'Content-Length': size }).on('drain', write)
        write()
      }),
    ])
    /** What R2 has stored, also of uploads that are not complete. */
    const stored = async () => {
      const all = await readdir(join(gateway.data, 'buckets'), { recursive: true, withFileTypes: true })
      return all.filter((it) => it.isFile() && it.parentPath.endsWith('blobs')).length
    }
    const closed = async (compute_id: string, { port }: { port: number }) => {
      await gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })
      const { project_id } = await gateway.call<LabProject>('POST', '/v2/projects', { name: compute_id, compute_id })
      await gateway.call('POST', `/v2/projects/${project_id}/close`)
      return `/v2/projects/${project_id}`
    }
    const labs = [await closed('silent', silent), await closed('endless', endless)]
    await expect.poll(() => endless.file.left, { timeout: 2 * hangMs }).toBe(1)
    // The time limit of a body that goes no further ends the other one.
    await expect.poll(stored, { timeout: 2 * hangMs }).toBeGreaterThan(0)
    await expect.poll(() => silent.file.left, { timeout: 4 * hangMs }).toBe(1)
    await expect.poll(stored, { timeout: 2 * hangMs }).toBe(0)
    expect(await gateway.keysIn(bucket)).toEqual([])
    for (const path of labs) {
      const shown = await gateway.call<LabProject>('GET', path)
      expect([shown.status, shown.archived]).toEqual(['closed', undefined])
      expect((await gateway.call<LabProject>('POST', `${path}/open`)).status).toBe('opened')
    }
  },
  10 * hangMs,
)
