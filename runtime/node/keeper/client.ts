import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { KeeperError } from './error.ts'
import { LineReader } from './lines.ts'
import {
  type ErrorCode,
  type Exit,
  type KeeperEvents,
  type Operations,
  type PacketPathName,
  protocolVersion,
} from './protocol.ts'
import { socketPath } from './socket-path.ts'

const callMs = 30_000
const connectMs = 5000

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** The service's side of the keeper's socket. */
export class KeeperClient {
  readonly pid: number
  readonly packetPath: PacketPathName
  /** Called for every unit that ends. */
  onExit: (key: string, run: number, exit: Exit) => void = () => {}
  /** Called for every capture that ended because its file cannot be written. */
  onCaptureFailed: (failure: KeeperEvents['capture.failed']) => void = () => {}
  /** Resolves when the connection has ended, which means that the keeper has. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #runDirectory: string
  readonly #pending = new Map<number, Pending>()
  #last = 0

  private constructor(
    socket: Socket,
    runDirectory: string,
    { pid, packet_path }: Operations['hello']['out'],
    rest: Buffer,
  ) {
    this.#socket = socket
    this.#runDirectory = runDirectory
    this.pid = pid
    this.packetPath = packet_path
    const lines = new LineReader(64 << 20)
    const read = (bytes: Buffer) => {
      for (const line of lines.push(bytes)) this.#take(line)
    }
    read(rest)
    socket.on('data', read)
    socket.resume()
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        for (const { reject, timer } of this.#pending.values()) {
          clearTimeout(timer)
          reject(new KeeperError('internal', 'the keeper has ended'))
        }
        this.#pending.clear()
        resolve()
      })
    })
  }

  /** Connects to the keeper of a data directory; rejects when there is none, or with `protocol` when it is of another version. */
  static async connect(dataDirectory: string): Promise<KeeperClient> {
    const runDirectory = join(dataDirectory, 'run')
    const socket = await open(runDirectory)
    const [{ result, error }, rest] = await ask(socket, 'hello', { protocol: protocolVersion })
    if (error !== undefined) {
      socket.destroy()
      const hint = error.code === 'protocol' ? '; stop the nodes with the version of Patchbay that started them' : ''
      throw new KeeperError(error.code, error.message + hint)
    }
    return new KeeperClient(socket, runDirectory, result as Operations['hello']['out'], rest)
  }

  /** Rejects with a KeeperError: the keeper's refusal, its end, or no answer within `ms`. */
  call<Op extends keyof Operations>(op: Op, input: Operations[Op]['in'], ms = callMs): Promise<Operations[Op]['out']> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new KeeperError('internal', 'the keeper has ended'))
      const id = ++this.#last
      const timer = setTimeout(() => {
        this.#pending.delete(id)
        reject(new KeeperError('internal', `the keeper did not answer ${op} within ${ms} ms`))
      }, ms)
      this.#pending.set(id, { resolve: resolve as (result: unknown) => void, reject, timer })
      this.#socket.write(`${JSON.stringify({ id, op, with: input })}\n`)
    })
  }

  /** The console of a running unit as a stream of its own: the scroll-back, then live. `not_running`. */
  attachConsole(key: string): Promise<Socket> {
    return this.#attach('console.attach', { key })
  }

  /** A capture as a stream of classic pcap; ends with it. `not_linked`, `not_running`. */
  attachCapture(wanted: Operations['capture.attach']['in']): Promise<Socket> {
    return this.#attach('capture.attach', wanted)
  }

  async #attach<Op extends 'console.attach' | 'capture.attach'>(op: Op, input: Operations[Op]['in']): Promise<Socket> {
    const socket = await open(this.#runDirectory)
    const [{ error }, rest] = await ask(socket, op, input)
    if (error !== undefined) {
      socket.destroy()
      throw new KeeperError(error.code, error.message)
    }
    if (rest.length > 0) socket.unshift(rest)
    return socket
  }

  /** Leaves the keeper running. */
  disconnect(): void {
    this.#socket.destroy()
  }

  #take(line: string): void {
    const message = JSON.parse(line) as Reply | Told
    if ('event' in message) {
      if (message.event === 'unit.exit') this.onExit(message.with.key, message.with.run, message.with.exit)
      else this.onCaptureFailed(message.with)
      return
    }
    const pending = this.#pending.get(message.id)
    if (pending === undefined) return
    this.#pending.delete(message.id)
    clearTimeout(pending.timer)
    if (message.error === undefined) pending.resolve(message.result)
    else pending.reject(new KeeperError(message.error.code, message.error.message))
  }
}

type Told = { [E in keyof KeeperEvents]: { readonly event: E; readonly with: KeeperEvents[E] } }[keyof KeeperEvents]

interface Reply {
  readonly id: number
  readonly result?: unknown
  readonly error?: { readonly code: ErrorCode; readonly message: string }
}

async function open(runDirectory: string): Promise<Socket> {
  const { path, release } = socketPath(runDirectory)
  try {
    const socket = connect(path)
    await once(socket, 'connect')
    return socket
  } finally {
    release()
  }
}

/** The first exchange on a connection: the reply, and what had come after it (bytes of a console). */
async function ask(socket: Socket, op: string, input: unknown): Promise<[Reply, Buffer]> {
  const lines = new LineReader(1 << 20)
  socket.write(`${JSON.stringify({ id: 0, op, with: input })}\n`)
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      clearTimeout(timer)
      socket.off('data', read).off('close', gone)
      finish()
    }
    const gone = () => settle(() => reject(new KeeperError('internal', 'the keeper has ended')))
    const timer = setTimeout(
      () =>
        settle(() => {
          socket.destroy()
          reject(new KeeperError('internal', 'the keeper does not answer'))
        }),
      connectMs,
    )
    const read = (bytes: Buffer) => {
      const end = bytes.indexOf(10)
      if (end < 0) return void lines.push(bytes)
      const [line] = lines.push(bytes.subarray(0, end + 1))
      socket.pause()
      settle(() => resolve([JSON.parse(line ?? '') as Reply, bytes.subarray(end + 1)]))
    }
    socket.on('data', read).on('close', gone)
    socket.on('error', () => {})
  })
}
