import { once } from 'node:events'
import { connect } from 'node:net'
import { onTestFinished, test } from 'vitest'
import { Joiner } from '../../runtime/node/service/join/joiner.ts'
import { TestService } from '../support/service.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const projects = '/v2/compute/projects'

test('a client that leaves before its websocket is open ends the request at the compute', async () => {
  const gateway = await WorkerGateway.start()
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { token } = await gateway.call<{ token: string }>('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  let ask = (_: AbortSignal) => {}
  const asked = new Promise<AbortSignal>((resolve) => {
    ask = resolve
  })
  const quiet = () => {}
  const joiner = new Joiner({
    ...{ url: gateway.url.replace('http', 'ws'), token, log: { debug: quiet, info: quiet, warn: quiet, error: quiet } },
    who: { version: '1.4.2', compute_id: 'slow', name: 'slow' },
    // Of a compute that does not answer the request for a console.
    fetch(request) {
      const { method, headers, signal } = request
      if (headers.get('upgrade') === null) {
        const { pathname, search } = new URL(request.url)
        const body = method === 'GET' ? null : request.body
        return fetch(service.url + pathname + search, { method, headers, signal, body, duplex: 'half' } as RequestInit)
      }
      ask(signal)
      return new Promise(() => {})
    },
  })
  onTestFinished(() => joiner.close())
  await gateway.untilConnected('slow')
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: 'slow' })
  const path = `${projects}/${project_id}/pc/nodes/${project_id}/console/ws`
  const { host, port } = new URL(gateway.url)
  const client = connect(Number(port), '127.0.0.1').on('error', quiet)
  const key = `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`
  const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}`
  client.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${adminToken}\r\n${upgrade}\r\n\r\n`)
  const signal = await asked
  const left = once(signal, 'abort')
  // A FIN could be the end of one side only: workerd waits then.
  client.resetAndDestroy()
  await left
})
