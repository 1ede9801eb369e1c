import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { encodeTelnet, greeting, isHttpRequest, TelnetDecoder } from '../../os/system/telnet.ts'
import { KeeperError } from '../protocol/error.ts'
import type { Listen } from '../protocol/protocol.ts'
import type { InputTaken } from './input-window.ts'
import { Scrollback } from './scrollback.ts'

const scrollbackBytes = 64 * 1024
/** Limit of unsent output for a client, above which the client is disconnected. Other clients never wait. */
const maxQueuedBytes = 256 * 1024
/** Unsent output for the client that types, above which the guest waits for it, as far as it can. */
const behindBytes = 64 * 1024
/** The limit for the client that the guest waits for: up to 400 KB that the guest wrote before it heard of it are on their way. */
const maxQueuedAwaitedBytes = 1024 * 1024
const maxClients = 64
/** Timeout for a client to read the rest when its connection ends, ms. */
const farewellMs = 2000

/**
 * Longest pause of reading from a client while the guest reads nothing, and longest wait of a guest for a client, ms: during a pause the
 * end of the client is not noticed.
 */
const stalledMs = 10_000
const refusal = Buffer.from('\r\n[The guest does not read its input: it is discarded]\r\n')

/** Sends typed bytes to the guest. */
export type GuestInput = (bytes: Uint8Array) => InputTaken

/**
 * The console of one unit: reads the output of the guest at any time, stores it in a scroll-back, and serves telnet clients and raw
 * streams. It exists as long as the unit.
 */
export class ConsoleHub {
  readonly #scrollback = new Scrollback(scrollbackBytes)
  readonly #clients = new Map<Socket, 'telnet' | 'raw'>()
  readonly #input: GuestInput
  readonly #wait: (isWaiting: boolean) => void
  /** The client that typed last: a paste is what makes a guest write much, and only for that one it waits. */
  #typist: Socket | undefined
  /** The client that the guest waits for. */
  #awaited: Socket | undefined
  /** Clients that got the message `refusal`. */
  readonly #refused = new WeakSet<Socket>()
  #server: Server | undefined
  #listen: Listen | null = null
  readonly #serial = new KeyedMutex()
  #isClosed = false

  /** `wait`: has the guest wait with its output, or go on. */
  constructor(input: GuestInput, wait: (isWaiting: boolean) => void = () => {}) {
    this.#input = input
    this.#wait = wait
  }

  get listen(): Listen | null {
    return this.#listen
  }

  get telnetClients(): number {
    return [...this.#clients.values()].filter((form) => form === 'telnet').length
  }

  /** The scroll-back. */
  get shown(): Buffer {
    return this.#scrollback.read()
  }

  /** Stores output of the guest, and sends it to every client. */
  output(bytes: Uint8Array): void {
    this.#scrollback.push(bytes)
    if (this.#clients.size === 0) return
    const doubled = encodeTelnet(bytes)
    for (const [client, form] of this.#clients) this.#send(client, form === 'telnet' ? doubled : bytes)
  }

  /** Opens the telnet listener, moves it, or (null) closes it with its clients. `port_taken` when it cannot be bound. */
  setListen(listen: Listen | null): Promise<void> {
    return this.#serial.run('listen', () => this.#setListen(listen))
  }

  async #setListen(listen: Listen | null): Promise<void> {
    const isSame = listen?.host === this.#listen?.host && listen?.port === this.#listen?.port
    if (isSame) {
      this.#listen = listen
      return
    }
    const server = listen === null ? undefined : await bind(listen, (client) => this.#accept(client))
    if (this.#isClosed) {
      server?.close()
      throw new KeeperError('not_running', 'the unit has ended')
    }
    this.#closeServer()
    this.#server = server
    this.#listen = listen
  }

  /** Makes a socket a raw client: it gets the scroll-back first, or its last `lines`, unless `replay` is false. */
  attach(
    socket: Socket,
    { replay = true, lines }: { replay?: boolean | undefined; lines?: number | undefined } = {},
  ): void {
    const shown = lines === undefined ? this.#scrollback.read() : this.#scrollback.lines(lines)
    this.#join(socket, 'raw', replay ? shown : new Uint8Array())
    socket.on('data', (bytes: Buffer) => this.#typed(socket, bytes))
  }

  /** Ends the connections of all clients: the unit has ended. */
  close(): void {
    this.#isClosed = true
    for (const client of this.#clients.keys()) dismiss(client)
    this.#clients.clear()
    this.#closeServer()
    this.#listen = null
  }

  #accept(client: Socket): void {
    if (this.#isClosed || this.#clients.size >= maxClients) {
      client.on('error', () => client.destroy())
      client.resume()
      if (!this.#isClosed) client.write(`This console already has ${maxClients} clients.\r\n`)
      dismiss(client)
      return
    }
    const decoder = new TelnetDecoder()
    client.setNoDelay(true)
    client.setKeepAlive(true, 30_000)
    const first = this.#listen?.replay === false ? new Uint8Array() : encodeTelnet(this.#scrollback.read())
    this.#join(client, 'telnet', Buffer.concat([greeting, first]))
    let isFirst = true
    client.on('data', (bytes: Buffer) => {
      if (isFirst && isHttpRequest(bytes)) {
        this.#clients.delete(client)
        client.destroy()
        return
      }
      isFirst = false
      const { data, reply } = decoder.decode(bytes)
      if (reply.length > 0) this.#send(client, reply)
      if (data.length > 0) this.#typed(client, data)
    })
  }

  /** Passes input to the guest. Pauses reading from a client that types faster than the guest reads, or does not read its output. */
  #typed(client: Socket, bytes: Uint8Array): void {
    this.#typist = client
    const { isTaken, room } = this.#input(bytes)
    if (isTaken) this.#refused.delete(client)
    else if (!this.#refused.has(client)) {
      this.#refused.add(client)
      this.#send(client, refusal)
    }
    if (room === undefined && !client.writableNeedDrain) return
    client.pause()
    const resume = () => client.resume()
    const afterRoom = () => (client.writableNeedDrain ? continueAfter(client, 'drain', resume) : resume())
    if (room === undefined) afterRoom()
    else continueAfter(client, room, afterRoom)
  }

  #join(client: Socket, form: 'telnet' | 'raw', first: Uint8Array): void {
    client.on('error', () => client.destroy())
    client.on('close', () => this.#clients.delete(client))
    this.#clients.set(client, form)
    if (first.length > 0) client.write(first)
  }

  #send(client: Socket, bytes: Uint8Array): void {
    const limit = client === this.#awaited ? maxQueuedAwaitedBytes : maxQueuedBytes
    if (client.writableLength + bytes.length > limit) {
      this.#clients.delete(client)
      client.destroy()
      return
    }
    if (!client.writable) return
    client.write(bytes)
    if (client === this.#typist && this.#awaited === undefined && client.writableLength > behindBytes)
      this.#hold(client)
  }

  /** Has the guest wait until the client has read its output, for a bounded time. */
  #hold(client: Socket): void {
    this.#awaited = client
    this.#wait(true)
    continueAfter(client, 'drain', () => {
      this.#awaited = undefined
      if (this.#typist === client && client.writableNeedDrain) this.#typist = undefined
      this.#wait(false)
    })
  }

  #closeServer(): void {
    this.#server?.close()
    for (const [client, form] of this.#clients) {
      if (form !== 'telnet') continue
      this.#clients.delete(client)
      dismiss(client)
    }
    this.#server = undefined
  }
}

/** Calls back once: when the client has read its output or the promise resolves, the client has gone, or `stalledMs` have passed. */
function continueAfter(client: Socket, awaited: 'drain' | Promise<void>, work: () => void): void {
  let isOver = false
  const finish = () => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    client.off('drain', finish).off('close', finish)
    work()
  }
  const timer = setTimeout(finish, stalledMs)
  client.once('close', finish)
  if (awaited === 'drain') client.once('drain', finish)
  else void awaited.then(finish)
}

/** Ends the connection after the queued output; destroys it after `farewellMs`. */
function dismiss(client: Socket): void {
  client.end()
  // Reads again, so that the end of the client is noticed.
  client.resume()
  const timer = setTimeout(() => client.destroy(), farewellMs)
  client.once('close', () => clearTimeout(timer))
}

async function bind({ host, port }: Listen, accept: (client: Socket) => void): Promise<Server> {
  const server = createServer(accept)
  try {
    const listening = once(server, 'listening')
    server.listen({ host, port })
    await listening
  } catch (cause) {
    throw new KeeperError('port_taken', `TCP port ${port} of ${host} cannot be bound: ${(cause as Error).message}`, {
      cause,
    })
  }
  // Later errors concern single connections (too many open files); the listener stays open.
  server.on('error', () => {})
  return server
}
