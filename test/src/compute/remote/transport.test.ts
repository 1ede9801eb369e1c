import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { fetchTransport, jsonBody } from '../../../../src/compute/remote/transport.ts'
import { textOf } from '../../../support/answer.ts'
import { listening } from '../../../support/fleet.ts'

test('with fetch, only a read is repeated when the connection has just ended', async () => {
  const asked: (string | undefined)[] = []
  const server = createServer((req, res) => {
    asked.push(req.method)
    if (asked.length % 2 === 1) res.destroy()
    else res.end('here')
  })
  const port = await listening(server)
  onTestFinished(() => void server.close().closeAllConnections())
  const send = fetchTransport(fetch)({ compute_id: 'one', protocol: 'http', host: '127.0.0.1', port })
  const { signal } = new AbortController()
  expect(await textOf(await send({ method: 'GET', path: '/x', headers: {}, body: null, signal }))).toBe('here')
  expect(asked).toEqual(['GET', 'GET'])
  await expect(send({ method: 'POST', path: '/x', ...jsonBody({}), signal })).rejects.toThrow()
  expect(asked).toEqual(['GET', 'GET', 'POST'])
  const given = AbortSignal.abort(new Error('given up'))
  await expect(send({ method: 'GET', path: '/x', headers: {}, body: null, signal: given })).rejects.toThrow('given up')
  expect(asked).toHaveLength(3)
})
