import { afterEach, expect, test, vi } from 'vitest'
import { Patchbay } from '../../../src/client/patchbay.ts'

afterEach(() => vi.unstubAllGlobals())

test('a console where the runtime has no WebSocket says which option is missing', async () => {
  vi.stubGlobal('WebSocket', undefined)
  const client = new Patchbay({ server: 'http://127.0.0.1:9', token: 'one' })
  await expect(client.console({ project: 'two', node: 'PC1' })).rejects.toThrow(
    /^WebSocket: .* pass one as the option WebSocket/,
  )
})

test('an answer with a list is one also where its schema has a name', async () => {
  const fetch = async () => new Response('["0x60"]', { headers: { 'Content-Type': 'application/json' } })
  const params = { project_id: 'one', node_id: 'R1' }
  const call = new Patchbay({ server: 'http://127.0.0.1:9', fetch }).call(
    'GET /v2/projects/{project_id}/nodes/{node_id}/dynamips/idlepc_proposals',
    { params },
  )
  await expect(call).resolves.toEqual(['0x60'])
})
