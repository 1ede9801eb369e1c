import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { joinUrl } from '../../runtime/node/service/join/joiner.ts'
import { AnsweringEnd } from '../../src/compute/tunnel/answering.ts'
import { decodeTunnelFrame, frameKinds } from '../../src/compute/tunnel/frames.ts'
import type { RelayedAnswer } from '../../src/lib/http/relayed-answer.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const who = { version: '0.1.0', compute_id: 'far', name: 'far' }

/** What a compute without images answers. */
function answer(path: string): RelayedAnswer {
  const shown = path.endsWith('/capabilities') ? { version: who.version, platform: 'linux', node_types: [] } : []
  const content = new TextEncoder().encode(JSON.stringify(shown))
  return { status: 200, headers: { 'Content-Type': 'application/json', 'X-Route': path }, content }
}

/** A compute that has joined, and the kinds of the frames that it got since. */
async function joinedCompute(gateway: WorkerGateway) {
  const { token } = await gateway.call<{ token: string }>('POST', '/v2/tokens', { name: 'far', purpose: 'join' })
  const url = `${joinUrl(gateway.url)}?compute_id=${who.compute_id}`
  const socket = new WebSocket(url, { headers: { Authorization: `Bearer ${token}` }, perMessageDeflate: false })
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  const kinds: number[] = []
  const end = new AnsweringEnd({
    wire: { send: (data) => socket.send(data), close: (code) => socket.close(code), drained: async () => {} },
    who,
    fetch: async ({ url }) => answer(new URL(url).pathname),
    greeted() {},
    ended() {},
  })
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) kinds.push(decodeTunnelFrame(data).kind)
    end.message(isBinary ? data : data.toString())
  })
  await gateway.untilConnected(who.compute_id)
  return kinds
}

test('requests of several clients to a compute that has joined go together', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' })
  const kinds = await joinedCompute(gateway)
  const path = `/v2/computes/${who.compute_id}/pc/images`
  expect(await gateway.call('GET', path)).toEqual([])
  kinds.length = 0
  const answers = await Promise.all(Array.from({ length: 40 }, () => gateway.fetch('GET', path)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(kinds.filter((kind) => kind === frameKinds.batch).length).toBeGreaterThan(0)
})
