import { randomBytes } from 'node:crypto'
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { Attempt, type AttemptOptions } from '../../../../runtime/node/engine/link-check/attempt.ts'
import { decodeCheck, encodeCheck } from '../../../../runtime/node/engine/link-check/packet.ts'
import { isUdpFree } from '../../../../runtime/node/engine/ports/bind-test.ts'
import type { UdpAddress } from '../../../../src/model/link-check.ts'
import { freePort } from '../../../support/ports.ts'

const never = new AbortController().signal
const key = randomBytes(32)
const at = (port: number, address = '127.0.0.1'): UdpAddress => ({ address, port })
const seen = ({ port, address }: UdpAddress): UdpAddress => ({ address, port })

const attempt = (more: Pick<AttemptOptions, 'port' | 'end' | 'candidates'> & Partial<AttemptOptions>) =>
  Attempt.run({ key, signal: never, ...more })

/** A socket of somebody else, with what it gets. */
async function other(port = 0, address = '127.0.0.1') {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  onTestFinished(() => void socket.close())
  socket.bind(port, address)
  await once(socket, 'listening')
  const got: { bytes: Buffer; from: RemoteInfo }[] = []
  socket.on('message', (bytes, from) => void got.push({ bytes, from }))
  return { socket, got, port: socket.address().port }
}

/** Sends a question as the other end would. */
const asks = (socket: Socket, port: number, more: { key?: Buffer; end?: 'a' | 'b' } = {}) =>
  socket.send(
    encodeCheck(
      { isQuestion: true, end: more.end ?? 'b', hasAnswer: false, id: randomBytes(8), seen: null },
      more.key ?? key,
    ),
    port,
    '127.0.0.1',
  )

test('two ends find the address that works, and report under which address each was seen', async () => {
  const [a, b, nobody] = [freePort(), freePort(), freePort()]
  const [ofA, ofB] = await Promise.all([
    attempt({ port: a, end: 'a', candidates: [at(nobody), at(b)] }),
    attempt({ port: b, end: 'b', candidates: [at(a)] }),
  ])
  expect(ofA.paths).toEqual([{ ...at(b), seen_as: at(a) }])
  expect(ofB.paths).toEqual([{ ...at(a), seen_as: at(b) }])
  expect(ofA.tried.map(({ port, outcome }) => [port, outcome])).toEqual([
    [nobody, 'silent'],
    [b, 'answered'],
  ])
  // The links that are made now bind the ports.
  expect([await isUdpFree(a), await isUdpFree(b)]).toEqual([true, true])
})

test('an end that begins later finds the other', async () => {
  const [a, b] = [freePort(), freePort()]
  const ear = createSocket('udp4').bind(b, '127.0.0.1')
  await once(ear, 'listening')
  const first = attempt({ port: a, end: 'a', candidates: [at(b)] })
  await once(ear, 'message')
  await new Promise<void>((resolve) => ear.close(() => resolve()))
  const second = await attempt({ port: b, end: 'b', candidates: [at(a)] })
  expect([(await first).paths.length, second.paths.length]).toEqual([1, 1])
})

test('works over IPv6', async () => {
  const [a, b] = [freePort(), freePort()]
  const [ofA] = await Promise.all([
    attempt({ port: a, end: 'a', candidates: [at(b, '::1')] }),
    attempt({ port: b, end: 'b', candidates: [at(a, '::1')] }),
  ])
  expect(ofA.paths).toEqual([{ ...at(b, '::1'), seen_as: at(a, '::1') }])
})

test('a port that a NAT has chosen at a named address is found by a question from it', async () => {
  const [a, b, wrong] = [freePort(), freePort(), freePort()]
  const [ofA, ofB] = await Promise.all([
    attempt({ port: a, end: 'a', candidates: [at(wrong)] }),
    attempt({ port: b, end: 'b', candidates: [at(a)] }),
  ])
  expect(ofA.paths.map(seen)).toEqual([at(b)])
  expect(ofB.paths.map(seen)).toEqual([at(a)])
})

test('an address that was not named gets no datagram, for any that it sends', async () => {
  const [a, b] = [freePort(), freePort()]
  const named = await other(b)
  const stranger = await other(0, '127.0.0.2')
  const over = new AbortController()
  const running = attempt({ port: a, end: 'a', candidates: [at(b)], signal: over.signal })
  await once(named.socket, 'message')
  asks(stranger.socket, a)
  // What comes after it has been answered; so it was looked at.
  asks(named.socket, a)
  await expect.poll(() => named.got.some(({ bytes }) => decodeCheck(bytes, key)?.isQuestion === false)).toBe(true)
  over.abort()
  expect((await running).paths).toEqual([])
  expect(stranger.got).toEqual([])
})

test('datagrams without the key, of the same end, and answers without a question are ignored', async () => {
  const [a, b] = [freePort(), freePort()]
  const { socket, got } = await other(b)
  const over = new AbortController()
  const running = attempt({ port: a, end: 'a', candidates: [at(b)], signal: over.signal })
  await once(socket, 'message')
  asks(socket, a, { key: randomBytes(32) })
  asks(socket, a, { end: 'a' })
  socket.send('hello', a, '127.0.0.1')
  const forged = { isQuestion: false, end: 'b' as const, hasAnswer: true, id: randomBytes(8), seen: at(a) }
  socket.send(encodeCheck(forged, key), a, '127.0.0.1')
  asks(socket, a)
  const answers = () => got.filter(({ bytes }) => decodeCheck(bytes, key)?.isQuestion === false)
  await expect.poll(() => answers().length).toBe(1)
  over.abort()
  const { paths, tried } = await running
  expect(paths).toEqual([])
  expect(tried).toMatchObject([{ outcome: 'heard' }])
  expect(answers()).toHaveLength(1)
})

test('a flood is answered a bounded number of times, from a bounded number of ports, and never with more bytes', async () => {
  const [a, b] = [freePort(), freePort()]
  const flood = await other(b)
  const more = await Promise.all(Array.from({ length: 8 }, () => other()))
  const over = new AbortController()
  const running = attempt({ port: a, end: 'a', candidates: [at(b)], signal: over.signal })
  await once(flood.socket, 'message')
  for (let round = 0; round < 100; round++) for (const { socket } of [flood, ...more]) asks(socket, a)
  const last = await other(0)
  // Behind all others in the queue of the socket.
  asks(last.socket, a, { end: 'a' })
  await expect.poll(() => flood.got.length).toBeGreaterThan(30)
  over.abort()
  await running
  const all = [flood, ...more].map(({ got }) => got)
  expect(all.filter((got) => got.length > 0).length).toBeLessThanOrEqual(5)
  expect(Math.max(...all.map((got) => got.length))).toBeLessThanOrEqual(48)
  expect(new Set(all.flat().map(({ bytes }) => bytes.length))).toEqual(new Set([84]))
})

test('a port that another program has is reported at once', async () => {
  const { port } = await other(0, '0.0.0.0')
  expect(await attempt({ port, end: 'a', candidates: [at(freePort())] })).toMatchObject({
    paths: [],
    tried: [{ outcome: 'failed', reason: 'the port is in use' }],
  })
})
