import { expect, test } from 'vitest'
import { isRefusal } from '../../../../src/compute/remote/transport.ts'
import type { AskingEnd } from '../../../../src/compute/tunnel/asking.ts'
import { frameKinds } from '../../../../src/compute/tunnel/frames.ts'
import type { Socket } from '../../../../src/lib/http/socket.ts'
import { jsonOf, textOf } from '../../../support/answer.ts'
import { pieces, request, socketServer, tunnelPair, until } from '../../../support/tunnel.ts'

async function open(asking: AskingEnd) {
  const { signal } = request('')
  const socket = await asking.openSocket({ path: '/v2/compute/console?x=1', headers: {}, signal })
  if (isRefusal(socket)) throw new Error(`refused: ${socket.status}`)
  const came: (string | Uint8Array)[] = []
  const closes: number[] = []
  socket.onMessage((data) => void came.push(data))
  socket.onClose((code) => void closes.push(code))
  socket.resume?.()
  return { socket, came, closes }
}

test('messages keep their type and their boundaries, and a close its code', async () => {
  const closed: string[] = []
  const pair = await tunnelPair({
    fetch: socketServer((it) => {
      it.onMessage((data) => it.send(data))
      it.onClose(() => closed.push('there'))
    }),
    limits: { window: 16_384, streams: 10 },
  })
  const { socket, came, closes } = await open(pair.asking)
  const large = new Uint8Array(300_000).map((_, index) => index % 251)
  socket.send('grün')
  socket.send(large)
  socket.send(new Uint8Array())
  socket.send('')
  await until(() => came.length === 4)
  const [text, bytes, empty, blank] = came
  expect([text, empty?.length, blank]).toEqual(['grün', 0, ''])
  expect(Buffer.from(bytes as Uint8Array).equals(large)).toBe(true)
  socket.close(4001, 'enough')
  await until(() => closes.length === 1 && closed.length === 1)
  expect(closes).toEqual([4001])
  await until(() => pair.asking.size === 0 && pair.answering.size === 0)
})

test('messages that were sent before a close still arrive, whichever end closes', async () => {
  const pair = await tunnelPair({
    fetch: socketServer((it) => {
      for (let index = 0; index < 50; index++) it.send(new Uint8Array(10_000))
      it.close(1000, 'The node stopped')
    }),
    limits: { window: 16_384, streams: 10 },
  })
  const { came, closes } = await open(pair.asking)
  await until(() => closes.length === 1)
  expect([came.length, closes]).toEqual([50, [1000]])
})

test('a websocket that is closed while its output waits sends nothing after its end, and breaks no other request', async () => {
  let there: Socket | undefined
  let isClosed = false
  const pair = await tunnelPair({
    async fetch(it, upgrade) {
      if (it.url.endsWith('other')) return new Response(pieces(4, 40_000).body)
      return upgrade(it, {
        open(socket) {
          there = socket
          socket.onClose(() => {
            isClosed = true
          })
        },
        abandon() {},
      })
    },
  })
  const { socket, closes } = await open(pair.asking)
  await until(() => there !== undefined)
  pair.up.hold()
  // More than the connection takes at once, and less than the window.
  for (let index = 0; index < 2; index++) there?.send(new Uint8Array(100_000))
  await until(() => pair.up.dataOf(1) >= 64 * 1024)
  socket.close()
  await until(() => isClosed)
  pair.up.release()
  await until(() => closes.length === 1)
  // Its body takes turns with what the websocket would still send.
  expect(await textOf(await pair.asking.send(request('other')))).toHaveLength(160_000)
  const sent = pair.up.sent.filter(({ stream }) => stream === 1).map(({ kind }) => kind)
  expect(sent.slice(sent.indexOf(frameKinds.end))).toEqual([frameKinds.end])
  expect([closes, pair.ends]).toEqual([[1000], {}])
})

test('an end that does not read only delays the other end of that websocket', async () => {
  let there: Socket | undefined
  let sent = 0
  const pair = await tunnelPair({
    async fetch(it, upgrade) {
      if (it.url.endsWith('/other')) return new Response('other')
      return upgrade(it, {
        open(socket) {
          there = socket
        },
        abandon() {},
      })
    },
    limits: { window: 64 * 1024, streams: 10 },
  })
  const { socket, came } = await open(pair.asking)
  socket.pause?.()
  const sending = (async () => {
    for (; sent < 200; sent++) {
      there?.send(new Uint8Array(10_000))
      await there?.drained()
    }
  })()
  await until(() => sent > 20)
  expect(await textOf(await pair.asking.send(request('other')))).toBe('other')
  expect(sent).toBeLessThan(45)
  expect(came.length).toBeLessThanOrEqual(1)
  socket.resume?.()
  await sending
  await until(() => came.length === 200)
})

test('a refused upgrade is an answer, and a tunnel that ends closes with 1006', async () => {
  const pair = await tunnelPair({
    async fetch(it, upgrade) {
      if (it.headers.get('upgrade') !== 'websocket') throw new Error('no upgrade')
      if (it.url.endsWith('none')) return Response.json({ message: 'no node', status: 404 }, { status: 404 })
      return upgrade(it, { open() {}, abandon() {} })
    },
  })
  const { signal } = request('')
  const refused = await pair.asking.openSocket({ path: '/v2/compute/none', headers: {}, signal })
  expect(isRefusal(refused)).toBe(true)
  if (isRefusal(refused)) expect([refused.status, await jsonOf(refused)]).toMatchObject([404, { status: 404 }])
  const { closes } = await open(pair.asking)
  pair.answering.close(1001, 'The compute is shutting down')
  await until(() => closes.length === 1)
  expect(closes).toEqual([1006])
  expect([pair.asking.size, pair.answering.size]).toEqual([0, 0])
})

test('a message that is too long, or not valid text, only ends its websocket', async () => {
  const pair = await tunnelPair({ fetch: socketServer(() => {}) })
  const one = await open(pair.asking)
  const two = await open(pair.asking)
  one.socket.send(new Uint8Array(2 ** 20 + 1))
  await until(() => one.closes.length === 1)
  expect([one.closes, two.closes]).toEqual([[1006], []])
  await until(() => pair.answering.size === 1)
})
