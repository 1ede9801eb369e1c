import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { forward } from '../../../../src/fleet/forward/forward.ts'
import { jsonOf } from '../../../support/answer.ts'
import { bodyOf, slowBody } from '../../../support/bodies.ts'
import { bed, faultOf, json } from '../../../support/fleet.ts'

test('bodies flow piece by piece, both ways', async () => {
  const { compute, send } = await bed()
  compute.answer = (req, res) => void req.pipe(res)
  const body = slowBody('one ')
  const answer = await send('x/y', { method: 'POST', body: body.stream })
  const reader = answer.body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('one ')
  body.more('two')
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('two')
  expect((await reader?.read())?.done).toBe(true)
})

test('a compute that answers before it has the body gets no more of it', async () => {
  const { compute, fleet } = await bed()
  compute.answer = (_, res) => json(res, 409, { message: 'no room', status: 409 })
  const body = slowBody('one ')
  const init = { method: 'POST', body: body.stream, duplex: 'half' } as RequestInit
  const request = new Request('http://us/v2/computes/one/x/y', init)
  const answer = await forward(fleet, 'one', {
    request,
    path: '/v2/compute/x/y',
    caller: { isDirect: true, mayExecute: false },
  })
  expect([answer.status, await jsonOf(answer)]).toEqual([409, { message: 'no room', status: 409 }])
  // It is left, not cancelled: that would end the connection on which the client waits for the answer.
  await expect.poll(() => request.body?.locked).toBe(false)
  body.more('two')
  expect(new TextDecoder().decode((await request.body?.getReader().read())?.value)).toBe('two')
})

test('a client that disconnects ends its request at the compute, before and during the answer', async () => {
  const { compute, send, fleet } = await bed()
  for (const begins of [false, true]) {
    const asked = new Promise<ServerResponse>((resolve) => {
      compute.answer = (_, res) => {
        if (begins) res.write('begin')
        resolve(res)
      }
    })
    const over = new AbortController()
    const answer = send('x/y', { signal: over.signal })
    const outcome = answer.then((it) => it.text()).catch((error: Error) => error.name)
    const res = await asked
    if (begins) await answer
    const closed = once(res, 'close')
    over.abort()
    await closed
    expect(await outcome).toBe('AbortError')
    expect((await fleet.get('one')).connected).toBe(true)
  }
})

test('a reader that cancels ends the answer at the compute', async () => {
  const { compute, send } = await bed()
  const asked = new Promise<ServerResponse>((resolve) => {
    compute.answer = (_, res) => {
      res.write('begin')
      resolve(res)
    }
  })
  const answer = await send('x/y')
  const closed = once(await asked, 'close')
  await answer.body?.cancel()
  await closed
})

test('a compute that disconnects before its answer is 504, and during it the answer breaks off', async () => {
  const { compute, send } = await bed()
  compute.answer = (req) => void req.socket.destroy()
  expect(await faultOf(send('x/y'))).toMatchObject({ status: 504 })
  const upload = send('x/y', { method: 'POST', body: bodyOf('ab') })
  expect(await faultOf(upload)).toMatchObject({ status: 504 })
  compute.answer = (_, res) => {
    res.write('begin')
    setImmediate(() => res.destroy())
  }
  const answer = await send('x/y')
  await expect(answer.text()).rejects.toThrow()
  compute.answer = (_, res) => {
    res.writeHead(500, { 'Content-Length': '100' }).write('{')
    setImmediate(() => res.destroy())
  }
  expect(await faultOf(send('x/y'))).toMatchObject({ status: 504 })
})

test('a compute that no longer exists is a conflict', async () => {
  const { compute, send, until } = await bed()
  await compute.stop()
  await until('one', { connected: false })
  expect(await faultOf(send('x/y'))).toMatchObject({ status: 409, message: expect.stringContaining('ECONNREFUSED') })
})

test('requests to a compute that is lost or deleted do not wait for ever', async () => {
  const { compute, send, fleet, until } = await bed()
  let asked = () => {}
  compute.answer = ({ url }, res) => {
    if (url?.endsWith('/stream') === true) res.write('begin')
    else asked()
  }
  const waiting = async () => {
    const reached = new Promise<void>((resolve) => {
      asked = resolve
    })
    const fault = faultOf(send('x/y'))
    await reached
    return fault
  }
  const broken = (await send('x/stream')).text().catch((error: Error) => error.message)
  const lost = waiting()
  await expect.poll(() => compute.asked.at(-1)).toBe('GET /v2/compute/x/y')
  // Its host hangs: the feed ends, and no other is begun.
  const { capabilities } = compute
  compute.capabilities = (req) => void req.socket.destroy()
  compute.endFeeds()
  expect(await lost).toMatchObject({ status: 504 })
  expect(await broken).toMatch(/Lost the connection/)
  compute.capabilities = capabilities
  await until('one', { connected: true })
  const deleted = waiting()
  await expect.poll(() => compute.asked.at(-1)).toBe('GET /v2/compute/x/y')
  await fleet.remove('one')
  expect(await deleted).toMatchObject({ status: 504 })
})
