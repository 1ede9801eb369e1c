import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { portOf } from '../support/gateway-lab.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

test('edits and events of a lab at a Worker have the name of who made them, and undo takes their own', async () => {
  const gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  try {
    const near = await TestService.start({ 'pc.engine': 'embedded' })
    const address = { protocol: 'http', host: '127.0.0.1', port: portOf(near) }
    await gateway.call('POST', '/v2/computes', { compute_id: 'near', ...address })
    await gateway.call('POST', '/v2/projects', { name: 'lab' })
    const tokenOf = async (name: string) =>
      (await gateway.call<{ token: string }>('POST', '/v2/tokens', { name, role: 'operate' })).token
    const tokens = { ada: await tokenOf('ada'), grace: await tokenOf('grace') }
    const ask = (who: keyof typeof tokens, method: string, path: string, body?: object) =>
      fetch(`${gateway.url}/v2/projects/lab${path}`, {
        method,
        headers: { authorization: `Bearer ${tokens[who]}` },
        ...(body && { body: JSON.stringify(body) }),
      })
    const over = new AbortController()
    const feed = await fetch(`${gateway.url}/v2/projects/lab/notifications`, {
      headers: { authorization: `Bearer ${tokens.ada}` },
      signal: over.signal,
    })
    const reader = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
    let lines = (await reader?.read())?.value ?? ''

    expect((await ask('ada', 'POST', '/nodes', { name: 'PC1', node_type: 'pc' })).status).toBe(201)
    while (!lines.includes('node.created')) lines += (await reader?.read())?.value ?? ''
    over.abort()
    const created = lines.split('\n').find((line) => line.includes('node.created'))
    expect(JSON.parse(created ?? '')).toMatchObject({ action: 'node.created', by: 'ada', event: { name: 'PC1' } })

    expect((await ask('grace', 'PUT', '/nodes/PC1', { x: 100 })).status).toBe(200)
    const edits = await (await ask('ada', 'GET', '/edits')).json()
    expect(edits).toMatchObject({ undo: { by: 'ada' } })
    const refused = await ask('ada', 'POST', '/undo')
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining('grace')])
    expect((await ask('grace', 'POST', '/undo')).status).toBe(200)
    expect((await ask('ada', 'POST', '/undo')).status).toBe(200)
    expect(await gateway.call('GET', '/v2/projects/lab/nodes')).toEqual([])
  } finally {
    await gateway.stop()
    await rm(gateway.data, { recursive: true, force: true })
  }
})
