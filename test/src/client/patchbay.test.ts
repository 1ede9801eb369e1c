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
