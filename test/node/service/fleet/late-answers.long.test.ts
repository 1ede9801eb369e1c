import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { version } from '../../../../runtime/node/os/system/version.ts'
import { forward } from '../../../../src/fleet/forward/forward.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { RelayedAnswer } from '../../../../src/lib/http/relayed-answer.ts'
import { lateHeader } from '../../../../src/model/late-answer.ts'
import { jsonOf } from '../../../support/answer.ts'
import { parseExposition } from '../../../support/exposition.ts'
import { faultOf, openFleet } from '../../../support/fleet.ts'
import { cutMs, cuttingProxy, type SlowCompute, slowCompute } from '../../../support/slow-compute.ts'

const router = { project_id: randomUUID(), kind: 'dynamips', node_id: randomUUID() } as const
const measure = `projects/${router.project_id}/dynamips/nodes/${router.node_id}/auto_idlepc`
/** Longer than the proxy waits. */
const longMs = cutMs + 500

const someone = { isDirect: true, mayExecute: false }

/** A gateway that has the compute behind a proxy. */
async function gatewayOf(compute: SlowCompute) {
  const { fleet } = await openFleet({ version, healthChecks: 'on-demand' })
  const port = await cuttingProxy(compute.port)
  await fleet.create({ compute_id: 'one', protocol: 'http', host: '127.0.0.1', port })
  return {
    get: (init?: RequestInit) =>
      forward(fleet, 'one', {
        request: new Request('http://us/x', init),
        path: `/v2/compute/${measure}`,
        caller: someone,
      }),
  }
}

/** The measurements that have begun, when they are so many. */
async function begun({ asked }: SlowCompute, count: number) {
  await expect.poll(() => asked.length).toBe(count)
  return asked
}

test('a request that takes minutes is answered through a proxy that closes idle connections', async () => {
  const compute = await slowCompute(200)
  const gateway = await gatewayOf(compute)
  const [handedOn, again] = [gateway.get(), gateway.get()]
  const found = await begun(compute, 2)
  const [refused, refusedAgain] = [gateway.get(), gateway.get()]
  await begun(compute, 4)
  const over = new AbortController()
  const left = gateway.get({ signal: over.signal }).catch((error: Error) => error.message)
  await begun(compute, 5)
  await sleep(longMs)
  for (const it of found.slice(0, 2)) it.answer()
  for (const it of found.slice(2, 4)) it.refuse(conflict('No value helps'))
  over.abort(new Error('enough'))

  const answer = (await handedOn) as RelayedAnswer
  expect([answer.status, await jsonOf(answer)]).toEqual([200, { idlepc: '0x60608040' }])
  expect(answer.headers['Content-Type']).toBe('application/json')
  expect(await jsonOf(await again)).toEqual({ idlepc: '0x60608040' })
  const fault = await refused
  expect([fault.status, await jsonOf(fault)]).toEqual([409, { message: 'No value helps', status: 409 }])
  expect((await refusedAgain).status).toBe(409)
  expect(await left).toBe('enough')
  await found[4]?.left

  // It is counted as what it was.
  const metrics = parseExposition(await (await fetch(`${compute.url}/metrics`)).text())
  const { samples = [] } = metrics.get('patchbay_http_requests_total') ?? {}
  const counted = samples.filter(({ labels }) => labels.route?.endsWith('/auto_idlepc'))
  expect(counted.map(({ labels, value }) => [labels.status, value])).toEqual([
    ['2xx', 2],
    ['4xx', 3],
  ])
})

test('without late answers the connection would be closed, and the compute count as lost', async () => {
  const compute = await slowCompute(60_000)
  const gateway = await gatewayOf(compute)
  expect(await faultOf(gateway.get())).toMatchObject({
    status: 504,
    message: expect.stringContaining('before it responded'),
  })
  await compute.asked[0]?.left
})

test('a complete body that is not read does not end a long request', async () => {
  const compute = await slowCompute(200)
  // `fetch` sends none with GET.
  const asked = request(`${compute.url}/v2/compute/${measure}`, { headers: { 'Content-Length': '2' } })
  const answered = once(asked, 'response')
  asked.end('{}')
  const [measurement] = await begun(compute, 1)
  // Twice as long as a body may stand still.
  await sleep(1000)
  measurement?.answer()
  const [answer] = await answered
  answer.resume()
  expect(answer.statusCode).toBe(200)
})

test('an answer does not begin while the request is still coming', async () => {
  const compute = await slowCompute(100)
  const socket = connect(compute.port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let came = ''
  socket.setEncoding('latin1').on('data', (text) => {
    came += text
  })
  socket.write(`POST /v2/compute/projects HTTP/1.1\r\nHost: ${new URL(compute.url).host}\r\n${lateHeader}: 1\r\n`)
  socket.write('Transfer-Encoding: chunked\r\n\r\n')
  for (const piece of ['{"na', 'me":', ' "la', 'b" }']) {
    await sleep(250)
    socket.write(`4\r\n${piece}\r\n`)
  }
  expect(came).toBe('')
  socket.write('0\r\n\r\n')
  // On a busy host it is a late one.
  await expect.poll(() => came).toMatch(/^HTTP\/1\.1 201 |"status":201/)
})
