import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { ConsoleHub } from '../../../../runtime/node/keeper/process/console-hub.ts'
import { InputWindow } from '../../../../runtime/node/keeper/process/input-window.ts'
import { greeting } from '../../../../runtime/node/os/system/telnet.ts'
import { freePorts } from '../../../support/ports.ts'
import { TcpClient } from '../../../support/tcp-client.ts'

const host = '127.0.0.1'
const base = freePorts(50)

/** A hub on the port, and what it was given for the guest. */
async function openHub(port: number): Promise<{ hub: ConsoleHub; typed: () => string; onTyped: () => Promise<void> }> {
  const pieces: string[] = []
  let wake: () => void = () => {}
  const hub = new ConsoleHub((bytes) => {
    pieces.push(Buffer.from(bytes).toString('latin1'))
    wake()
    return { isTaken: true }
  })
  onTestFinished(() => hub.close())
  await hub.setListen({ host, port })
  return { hub, typed: () => pieces.join(''), onTyped: () => new Promise((resolve) => (wake = resolve)) }
}

async function occupy(port: number): Promise<void> {
  const server = createServer().listen(port, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
}

async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, host)
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  }).then((is) => {
    socket.destroy()
    return is as boolean
  })
}

/** Unlike `once`, not disturbed by the error that may come first. */
function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())))
}

test('every client gets the greeting and the same output, and the input of each reaches the guest', async () => {
  const { hub, typed, onTyped } = await openHub(base)
  const clients = await Promise.all(Array.from({ length: 10 }, () => TcpClient.connect(base)))
  for (const client of clients) await client.untilLength(greeting.length)
  hub.output(Buffer.from('login: \xff', 'latin1'))
  for (const client of clients) {
    await client.untilLength(greeting.length + 9)
    expect(client.received).toEqual(Buffer.concat([greeting, Buffer.from('login: \xff\xff', 'latin1')]))
  }
  for (const client of clients) {
    const arrival = onTyped()
    client.socket.write('x\r\n')
    await arrival
  }
  await expect.poll(typed).toBe('x\r'.repeat(10))
})

test('a late client gets the last 64 KiB', async () => {
  const { hub } = await openHub(base + 1)
  const text = Array.from({ length: 20_000 }, (_, line) => `${line}\r\n`).join('')
  hub.output(Buffer.from(text))
  const client = await TcpClient.connect(base + 1)
  await client.untilLength(greeting.length + 65_536)
  expect(client.received.subarray(greeting.length).toString()).toBe(text.slice(-65_536))
})

test('a client that never reads is dropped, while another one reads on and misses nothing', async () => {
  const { hub } = await openHub(base + 2)
  const slow = connect(base + 2, host)
  slow.on('error', () => {})
  await once(slow, 'connect')
  slow.pause()
  const reader = await TcpClient.connect(base + 2)
  await reader.untilLength(greeting.length)
  const chunk = Buffer.alloc(65_536, 'output of a guest ')
  const chunks = 400
  for (let sent = 1; sent <= chunks; sent++) {
    hub.output(chunk)
    await reader.untilLength(greeting.length + sent * chunk.length)
  }
  let read = 0
  slow.on('data', (bytes: Buffer) => {
    read += bytes.length
  })
  slow.resume()
  await closeOf(slow)
  expect(read).toBeLessThan(chunks * chunk.length)
  expect(reader.socket.closed).toBe(false)
})

test('a taken port is refused, and the present listener stays', async () => {
  await occupy(base + 4)
  const { hub } = await openHub(base + 3)
  await expect(hub.setListen({ host, port: base + 4 })).rejects.toMatchObject({ code: 'port_taken' })
  expect(hub.listen).toEqual({ host, port: base + 3 })
  const client = await TcpClient.connect(base + 3)
  await client.untilLength(greeting.length)
})

test('moving the listener disconnects its clients and frees the port, but keeps a raw attachment', async () => {
  const { hub } = await openHub(base + 5)
  const telnet = await TcpClient.connect(base + 5)
  await telnet.untilLength(greeting.length)
  const rawSide = createServer((socket) => hub.attach(socket)).listen(base + 7, host)
  onTestFinished(() => void rawSide.close())
  await once(rawSide, 'listening')
  const raw = await TcpClient.connect(base + 7)

  await hub.setListen({ host, port: base + 6 })
  await telnet.closed()
  expect(await canConnect(base + 5)).toBe(false)
  expect(await canConnect(base + 6)).toBe(true)
  await hub.setListen(null)
  expect(await canConnect(base + 6)).toBe(false)
  hub.output(Buffer.from('still here \xff', 'latin1'))
  expect((await raw.until((it) => it.length >= 12)).toString('latin1')).toBe('still here \xff')
})

test('listeners that are moved several times at once leave only the last one open', async () => {
  const { hub } = await openHub(base + 8)
  await Promise.all([base + 9, base + 10, base + 11].map((port) => hub.setListen({ host, port })))
  expect(await Promise.all([base + 8, base + 9, base + 10, base + 11].map(canConnect))).toEqual([
    false,
    false,
    false,
    true,
  ])
})

test('a listener that is opened while the unit ends is closed, too', async () => {
  const { hub } = await openHub(base + 12)
  const moving = hub.setListen({ host, port: base + 13 })
  hub.close()
  await expect(moving).rejects.toMatchObject({ code: 'not_running' })
  expect(await canConnect(base + 12)).toBe(false)
  expect(await canConnect(base + 13)).toBe(false)
})

test('the 65th client is refused with a message, and a reset of one client does not affect others', async () => {
  const { hub } = await openHub(base + 14)
  const clients: TcpClient[] = []
  for (let count = 0; count < 64; count++) clients.push(await TcpClient.connect(base + 14))
  for (const client of clients) await client.untilLength(greeting.length)
  const refused = await TcpClient.connect(base + 14)
  await refused.shows('already has 64 clients')
  await refused.closed()
  const rude = connect(base + 14, host)
  rude.on('error', () => {})
  await once(rude, 'connect')
  rude.write('typed before the refusal')
  rude.resetAndDestroy()
  await closeOf(rude)
  hub.output(Buffer.from('on'))
  await clients[0]?.shows('on')
  clients[1]?.socket.destroy()
  // Its place is free again as soon as the hub has seen its end.
  await expect
    .poll(async () => (await beginning(base + 14)).subarray(0, 3))
    .toEqual(Buffer.from(greeting.subarray(0, 3)))
})

async function beginning(port: number): Promise<Buffer> {
  const client = await TcpClient.connect(port)
  const received = await client.until((it) => it.length > 2)
  client.socket.destroy()
  return received
}

test('the end of the unit is the end of every stream, after its last output, also for a client that stays', async () => {
  const { hub } = await openHub(base + 15)
  const client = await TcpClient.connect(base + 15)
  await client.untilLength(greeting.length)
  const stubborn = connect({ port: base + 15, host, allowHalfOpen: true })
  stubborn.on('error', () => {})
  await once(stubborn, 'data')
  hub.output(Buffer.from('bye'))
  hub.close()
  await client.closed()
  expect(client.received.subarray(-3).toString()).toBe('bye')
  // It never closes its own side: what it sends is answered by a reset once the hub has given it up.
  stubborn.resume()
  const typing = setInterval(() => stubborn.write('x'), 100)
  await closeOf(stubborn)
  clearInterval(typing)
})

test('a client that types faster than the guest reads waits for it, and nothing of it is lost', async () => {
  const window = new InputWindow()
  let [read, unread, most] = [0, 0, 0]
  const hub = new ConsoleHub((bytes) => {
    unread += bytes.length
    most = Math.max(most, unread)
    return window.offer(bytes.length)
  })
  onTestFinished(() => hub.close())
  await hub.setListen({ host, port: base + 20 })
  const client = await TcpClient.connect(base + 20)
  client.socket.write(Buffer.alloc(1 << 20, 'x'))
  while (read < 1 << 20) {
    await new Promise(setImmediate)
    window.taken(unread)
    read += unread
    unread = 0
  }
  expect(read).toBe(1 << 20)
  // The window, and one piece more than fits in.
  expect(most).toBeLessThanOrEqual(128 * 1024)
})

test('a guest waits for the client that has typed and is behind with reading, and for no other one', async () => {
  const waits: boolean[] = []
  const hub = new ConsoleHub(
    () => ({ isTaken: true }),
    (isWaiting) => waits.push(isWaiting),
  )
  onTestFinished(() => hub.close())
  await hub.setListen({ host, port: base + 22 })
  const [typist, other] = [connect(base + 22, host), connect(base + 22, host)]
  for (const client of [typist, other]) {
    client.on('error', () => {})
    await once(client, 'connect')
    client.pause()
  }
  const chunk = Buffer.alloc(16_384, 'output of a guest ')
  await expect.poll(() => hub.telnetClients).toBe(2)
  typist.write('x')
  // What the kernel takes is not behind.
  let written = 0
  for (; written < 2000 && waits.length === 0; written++) {
    hub.output(chunk)
    await new Promise(setImmediate)
  }
  expect(waits).toEqual([true])
  // What the guest writes before it hears of it reaches the client that has typed; who only reads is cut off, as ever.
  for (let count = 0; count < 25; count++, written++) hub.output(chunk)
  expect(hub.telnetClients).toBe(1)
  let read = 0
  typist.on('data', (bytes: Buffer) => {
    read += bytes.length
  })
  typist.resume()
  await expect.poll(() => read).toBe(greeting.length + written * chunk.length)
  expect(waits).toEqual([true, false])
})

test('input for a guest that reads nothing is refused with a message, once', async () => {
  const hub = new ConsoleHub(() => ({ isTaken: false }))
  onTestFinished(() => hub.close())
  await hub.setListen({ host, port: base + 21 })
  const client = await TcpClient.connect(base + 21)
  client.socket.write('a')
  const text = '\r\n[The guest does not read its input: it is discarded]\r\n'
  await client.untilLength(greeting.length + text.length)
  client.socket.write('b')
  hub.output(Buffer.from('later'))
  await client.shows('later')
  expect(client.received.subarray(greeting.length).toString()).toBe(`${text}later`)
})

test.for([
  ['a form', '/'],
  ['a form with a long path', `/${'a'.repeat(100_000)}`],
] as const)('%s that a web page has sent to the port of a console types nothing', async ([, path]) => {
  const { hub, typed } = await openHub(base + 40)
  const page = connect(base + 40, host)
  page.on('error', () => {})
  await once(page, 'connect')
  const body = 'x=\r\nenable\r\nreload\r\n'
  page.write(
    `POST ${path} HTTP/1.1\r\nHost: ${host}:${base + 40}\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  page.resume()
  await closeOf(page)
  expect(typed()).toBe('')
  await hub.setListen(null)
})

test('typed or pasted input reaches the guest, also when it contains HTTP', async () => {
  const { typed } = await openHub(base + 41)
  for (const text of ['P', 'GET / now\r', 'GET / HTTP/1.1\r', '\xff\xfd\x03POST / HTTP/1.1\r\n']) {
    const client = connect(base + 41, host)
    await once(client, 'connect')
    const before = typed().length
    client.write(Buffer.from(text, 'latin1'))
    await expect.poll(() => typed().length, { interval: 5 }).toBeGreaterThan(before)
    client.destroy()
  }
})
