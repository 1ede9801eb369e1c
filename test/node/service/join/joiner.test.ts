import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { wrap } from '../../../../runtime/node/service/http/websocket.ts'
import { Joiner, joinUrl, waitAfter } from '../../../../runtime/node/service/join/joiner.ts'
import { AskingEnd } from '../../../../src/compute/tunnel/asking.ts'
import { textOf } from '../../../support/answer.ts'

/** A gateway, as far as the joiner sees it: it lets in who has this token. */
async function gateway(token: string, refusal = 401) {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    verifyClient: ({ req }, decide) => {
      attempts.push(performance.now())
      decide(req.headers.authorization === `Bearer ${token}`, refusal)
      for (const wake of waiting.splice(0)) wake()
    },
  })
  const attempts: number[] = []
  const waiting: (() => void)[] = []
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return {
    server,
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    attempts,
    async until(count: number) {
      while (attempts.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }
}

function accept(socket: WebSocket): AskingEnd {
  const wire = wrap(socket)
  const end: AskingEnd = new AskingEnd({
    wire: { ...wire, close: (code, reason) => wire.close(code, reason) },
    version: '1.0.0',
    greeted: () => end.accept(),
    ended() {},
  })
  wire.onMessage((data) => end.message(data))
  socket.once('close', () => end.closed())
  return end
}

function join(url: string, waits = { first: 10, longest: 40, steadyMs: 60_000 }) {
  const said: [level: string, message: string, details: object][] = []
  const wakes: (() => void)[] = []
  const say = (level: string) => (details: object, message: string) => {
    said.push([level, message, details])
    for (const wake of wakes.splice(0)) wake()
  }
  const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') }
  const who = { version: '1.0.0', compute_id: 'c1', name: 'one' }
  const joiner = new Joiner({ url, token: 'right', who, fetch: async () => new Response('x'), log, waits })
  onTestFinished(() => joiner.close())
  return {
    joiner,
    said,
    async until(message: string) {
      while (!said.some((it) => it[1] === message)) await new Promise<void>((resolve) => wakes.push(resolve))
    },
  }
}

test('a lost connection is opened again, with growing waits, and reported once', async () => {
  const there = await gateway('right')
  there.server.on('connection', (socket) => socket.close(1001, 'The service is shutting down'))
  const { said } = join(there.url)
  await there.until(5)
  expect(said).toEqual([
    [
      'warn',
      'the gateway is not connected; the compute tries again',
      { gateway: `${there.url}/v2/computes/join`, reason: 'The service is shutting down' },
    ],
  ])
})

test('computes that lost their gateway at the same time do not return at the same time, even at the first attempt', () => {
  const waits = { first: 1000, longest: 30_000, steadyMs: 10_000 }
  const range = (failures: number) => [waitAfter(failures, waits, 0), waitAfter(failures, waits, 1)]
  expect([1, 2, 3, 100].map(range)).toEqual([
    [1000, 2000],
    [2000, 4000],
    [4000, 8000],
    [30_000, 60_000],
  ])
})

test('requests are answered while the tunnel is open, and it is closed with a code', async () => {
  const there = await gateway('right')
  const connected = once(there.server, 'connection') as Promise<[WebSocket]>
  const { joiner, said, until } = join(there.url)
  const [socket] = await connected
  const end = accept(socket)
  await until('joined the gateway')
  expect(JSON.stringify(said)).not.toContain('right')
  const { signal } = new AbortController()
  const answer = await end.send({ method: 'GET', path: '/v2/compute/x', headers: {}, body: null, signal })
  expect(await textOf(answer)).toBe('x')
  const closed = once(socket, 'close') as Promise<[number, Buffer]>
  await joiner.close()
  const [code, reason] = await closed
  expect([code, String(reason)]).toEqual([1001, 'The compute is shutting down'])
  expect(there.attempts).toHaveLength(1)
})

test('a refused token is reported once, and tried again after the longest wait', async () => {
  const there = await gateway('another')
  const { said, until } = join(there.url, { first: 1, longest: 80, steadyMs: 60_000 })
  await until('the gateway refuses this compute')
  await there.until(3)
  expect(said).toMatchObject([
    ['error', 'the gateway refuses this compute', { reason: 'the token is not one of its join tokens' }],
  ])
  const [first = 0, second = 0, third = 0] = there.attempts
  expect(Math.min(second - first, third - second)).toBeGreaterThan(70)
})

test('a compute that has to wait before it may join tries again, and reports why', async () => {
  const there = await gateway('another', 429)
  const { said } = join(there.url)
  await there.until(3)
  const reason = 'it has connected too often, or too many computes are connecting'
  expect(said).toMatchObject([['warn', 'the gateway is not connected; the compute tries again', { reason }]])
})

test('a compute that was replaced does not return at once', async () => {
  const there = await gateway('right')
  there.server.on('connection', (socket) => socket.close(4409, 'The compute has joined again'))
  const { said, until } = join(there.url, { first: 1, longest: 60_000, steadyMs: 60_000 })
  await until('the gateway refuses this compute')
  expect([there.attempts.length, said.length]).toEqual([1, 1])
})

test('a gateway is named by its address or by the whole path', () => {
  const whole = 'wss://gw.example/v2/computes/join'
  expect(['wss://gw.example', 'https://gw.example/', whole].map(joinUrl)).toEqual([whole, whole, whole])
  expect(joinUrl('wss://gw.example/lab/')).toBe('wss://gw.example/lab/v2/computes/join')
})
