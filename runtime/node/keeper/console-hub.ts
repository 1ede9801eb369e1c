import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import { KeeperError } from '../keeper-protocol/error.ts'
import type { Listen } from '../keeper-protocol/protocol.ts'
import { encodeTelnet, greeting, isHttpRequest, TelnetDecoder } from '../system/telnet.ts'
import type { InputTaken } from './input-window.ts'
import { Scrollback } from './scrollback.ts'

const scrollbackBytes = 64 * 1024
/** A client that lets this much pile up is dropped; the others never wait for it. */
const maxQueuedBytes = 256 * 1024
const maxClients = 64
/** A client that was told to go is gone after this, whether it has read the rest or not, ms. */
const farewellMs = 2000

/** A client is not read from for so long at most while the guest takes nothing, ms: its end would not be noticed. */
const stalledMs = 10_000
const refusal = Buffer.from('\r\n[The guest does not read: what is typed is thrown away]\r\n')

/** Where the hub sends what clients type. */
export type GuestInput = (bytes: Uint8Array) => InputTaken

/**
 * The console of one unit: one reader of the guest that depends on no client, a scroll-back, and any number of clients,
 * by telnet and raw. Lives as long as the unit.
 */
export class ConsoleHub {
  readonly #scrollback = new Scrollback(scrollbackBytes)
  readonly #clients = new Map<Socket, 'telnet' | 'raw'>()
  readonly #input: GuestInput
  /** Clients that were told that nothing is taken. */
  readonly #refused = new WeakSet<Socket>()
  #server: Server | undefined
  #listen: Listen | null = null
  readonly #serial = new KeyedMutex()
  #isClosed = false

  constructor(input: GuestInput) {
    this.#input = input
  }

  get listen(): Listen | null {
    return this.#listen
  }

  /** What the guest has shown last. */
  get shown(): Buffer {
    return this.#scrollback.read()
  }

  /** Output of the guest: kept, and given to every client. */
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
    if (isSame) return
    const server = listen === null ? undefined : await bind(listen, (client) => this.#accept(client))
    if (this.#isClosed) {
      server?.close()
      throw new KeeperError('not_running', 'the unit has ended meanwhile')
    }
    this.#closeServer()
    this.#server = server
    this.#listen = listen
  }

  /** Takes over a socket whose bytes are the console's: the scroll-back goes out first. */
  attach(socket: Socket): void {
    this.#join(socket, 'raw', this.#scrollback.read())
    socket.on('data', (bytes: Buffer) => this.#typed(socket, bytes))
  }

  /** The unit has ended: every client is told by the end of its stream. */
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
      if (!this.#isClosed) client.write(`This console has ${maxClients} clients already.\r\n`)
      dismiss(client)
      return
    }
    const decoder = new TelnetDecoder()
    client.setNoDelay(true)
    client.setKeepAlive(true, 30_000)
    this.#join(client, 'telnet', Buffer.concat([greeting, encodeTelnet(this.#scrollback.read())]))
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

  /** A client that types faster than the guest reads, or does not read what it is shown, is not read from for a while. */
  #typed(client: Socket, bytes: Uint8Array): void {
    const { isTaken, room } = this.#input(bytes)
    if (isTaken) this.#refused.delete(client)
    else if (!this.#refused.has(client)) {
      this.#refused.add(client)
      this.#send(client, refusal)
    }
    const isBehind = client.writableNeedDrain
    if (room === undefined && !isBehind) return
    client.pause()
    const goOn = () => {
      clearTimeout(timer)
      client.off('drain', goOn).off('close', goOn)
      client.resume()
    }
    const timer = setTimeout(goOn, stalledMs)
    client.once('close', goOn)
    if (room === undefined) client.once('drain', goOn)
    else void room.then(goOn)
  }

  #join(client: Socket, form: 'telnet' | 'raw', first: Uint8Array): void {
    client.on('error', () => client.destroy())
    client.on('close', () => this.#clients.delete(client))
    this.#clients.set(client, form)
    if (first.length > 0) client.write(first)
  }

  #send(client: Socket, bytes: Uint8Array): void {
    if (client.writableLength + bytes.length > maxQueuedBytes) {
      this.#clients.delete(client)
      client.destroy()
    } else if (client.writable) client.write(bytes)
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

/** Ends the connection after what is queued for the client; one that neither reads nor goes is not waited for. */
function dismiss(client: Socket): void {
  client.end()
  // Its end must be noticed, also when it was not read from.
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
  // Errors after that are those of single connections (too many open files); the listener goes on.
  server.on('error', () => {})
  return server
}
