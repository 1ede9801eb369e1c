import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { LineReader } from '../../os/system/line-reader.ts'
import { socketPath } from '../../os/system/socket-path.ts'
import { keeperDirectory } from '../process/generation.ts'
import { KeeperError } from '../protocol/error.ts'
import {
  commandGraceMs,
  type Exit,
  hasOperation,
  helloProtocols,
  isFullProtocol,
  type KeeperErrorCode,
  type KeeperEvents,
  type Operations,
  type PacketPathName,
  type StreamOperation,
  terminalMs,
} from '../protocol/protocol.ts'

const callMs = 30_000
/** Timeout of the first exchange on a connection, after which the keeper counts as hung, ms. */
const helloMs = 5000
/** Timeout of a further command, ms: beyond that of its start in the keeper, which is no sign that the keeper hangs. */
const runMs = terminalMs + commandGraceMs + 5000
/**
 * Interval of the checks while requests are pending, ms. After an interval without any message the client sends a ping; after one more
 * the keeper counts as hung. So every wait for a hung keeper ends within 10 s, but for that of a further command.
 */
const quietMs = 3000

export const hangs = 'the process that holds the nodes (the keeper) is running, but does not answer'

interface Pending {
  readonly op: keyof Operations
  readonly key: string | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** The service's side of the keeper's socket. */
export class KeeperClient {
  readonly pid: number
  /** Version of the keeper's program, and of its protocol. */
  readonly version: string
  readonly protocol: number
  readonly packetPath: PacketPathName
  /** Called for every unit that ends. */
  onExit: (key: string, run: number, exit: Exit) => void = () => {}
  /** Called for every capture that ended because its file cannot be written. */
  onCaptureFailed: (failure: KeeperEvents['capture.failed']) => void = () => {}
  /** Called when frames go in a circle through a switch. */
  onLooped: (loop: KeeperEvents['bridge.looped']) => void = () => {}
  /** Called when the keeper stops answering, and when it answers again. */
  onSilence: (isSilent: boolean) => void = () => {}
  /** Resolves when the connection has ended, which means that the keeper has ended. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #runDirectory: string
  readonly #pending = new Map<number, Pending>()
  #last = 0
  #isSilent = false
  #watch: NodeJS.Timeout | undefined
  /** Whether a message arrived since the last check, and whether the client has sent a ping since then. */
  #hasHeard = false
  #hasPinged = false

  private constructor(socket: Socket, runDirectory: string, hello: Operations['hello']['out'], rest: Buffer) {
    this.#socket = socket
    this.#runDirectory = runDirectory
    this.pid = hello.pid
    this.version = hello.version
    this.protocol = hello.protocol
    this.packetPath = hello.packet_path
    const lines = new LineReader(64 << 20)
    const read = (bytes: Buffer) => {
      this.#received()
      for (const line of lines.push(bytes)) this.#handleLine(line)
    }
    read(rest)
    socket.on('data', read)
    socket.resume()
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        clearTimeout(this.#watch)
        this.#rejectAll(new KeeperError('internal', 'the keeper has ended'))
        resolve()
      })
    })
  }

  /** Connects to the keeper of this build in a data directory; rejects when none runs. */
  static connect(dataDirectory: string): Promise<KeeperClient> {
    return KeeperClient.open(keeperDirectory(dataDirectory))
  }

  /**
   * Connects to the keeper of any version in a directory. Rejects when none runs, with `no_answer` when it hangs, and with `protocol`
   * when it refuses this version. With `onLate` the call waits for a hung keeper instead, and calls `onLate` at the timeout.
   */
  static async open(runDirectory: string, onLate?: () => void): Promise<KeeperClient> {
    let refusal: KeeperError | undefined
    for (const protocol of helloProtocols) {
      const socket = await open(runDirectory)
      const [{ result, error }, rest] = await ask(socket, 'hello', { protocol }, { onLate })
      if (error === undefined) return new KeeperClient(socket, runDirectory, result as Operations['hello']['out'], rest)
      socket.destroy()
      refusal = new KeeperError(error.code, error.message)
      if (error.code !== 'protocol') break
    }
    throw refusal ?? new KeeperError('internal', 'the keeper does not answer')
  }

  /** Whether the keeper has all operations; a keeper of another version has only the core operations. */
  get isFull(): boolean {
    return isFullProtocol(this.protocol)
  }

  /**
   * Rejects with a KeeperError: the error of the keeper, `internal` when it has ended, `no_answer` when it hangs or takes longer than
   * `ms`, `other_version` when a keeper of another version does not have the operation.
   */
  call<Op extends keyof Operations>(op: Op, input: Operations[Op]['in'], ms = callMs): Promise<Operations[Op]['out']> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new KeeperError('internal', 'the keeper has ended'))
      if (this.#isSilent) return reject(new KeeperError('no_answer', hangs))
      if (!hasOperation(this.protocol, op)) return reject(this.#isOther(op))
      const id = ++this.#last
      const timer = setTimeout(() => {
        this.#pending.delete(id)
        reject(new KeeperError('no_answer', `the keeper did not answer ${op} within ${ms} ms`))
      }, ms)
      const key = 'key' in input ? input.key : undefined
      this.#pending.set(id, { op, key, resolve: resolve as (result: unknown) => void, reject, timer })
      this.#send(id, op, input)
      if (this.#pending.size === 1) this.#stopWatch()
      this.#startWatch()
    })
  }

  /**
   * The console of a running unit: the scroll-back, or its last `lines`, unless `replay` is false, then live output. Or a capture in classic pcap, which
   * ends with the capture. `not_linked`, `not_running`.
   */
  async attach<Op extends StreamOperation>(op: Op, input: Operations[Op]['in']): Promise<Socket> {
    if (!hasOperation(this.protocol, op)) throw this.#isOther(op)
    const socket = await open(this.#runDirectory)
    const [{ error }, rest] = await ask(socket, op, input, op === 'console.run' ? { ms: runMs } : {})
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

  #isOther(op: string): KeeperError {
    const who = `a keeper of Patchbay ${this.version} (protocol ${this.protocol})`
    return new KeeperError('other_version', `the node is held by ${who}, which does not support the operation ${op}`)
  }

  #send<Op extends keyof Operations>(id: number, op: Op, input: Operations[Op]['in']): void {
    this.#socket.write(`${JSON.stringify({ id, op, with: input })}\n`)
  }

  #startWatch(): void {
    if (this.#watch !== undefined) return
    this.#hasHeard = false
    this.#hasPinged = false
    this.#watch = setTimeout(() => this.#check(), quietMs)
  }

  #stopWatch(): void {
    clearTimeout(this.#watch)
    this.#watch = undefined
  }

  #check(): void {
    this.#watch = undefined
    if (this.#pending.size === 0 || this.#socket.destroyed) return
    if (this.#hasHeard) return this.#startWatch()
    if (this.#hasPinged) return void setImmediate(() => this.#judge())
    this.#hasPinged = true
    this.#send(++this.#last, 'ping', {})
    this.#watch = setTimeout(() => this.#check(), quietMs)
  }

  /** After what the socket has was read: a service that was held up runs its timers first. */
  #judge(): void {
    if (this.#watch !== undefined || this.#pending.size === 0 || this.#socket.destroyed) return
    if (this.#hasHeard) this.#startWatch()
    else this.#fallSilent()
  }

  /** Rejects all pending requests: later answers come too late. The answer to the ping shows that the keeper is back. */
  #fallSilent(): void {
    this.#isSilent = true
    // A unit whose start is no longer awaited must not stay running: the keeper stops it right after the start.
    for (const { op, key } of this.#pending.values())
      if (op === 'unit.start' && key !== undefined) this.#send(++this.#last, 'unit.stop', { key, grace_ms: 0 })
    this.#rejectAll(new KeeperError('no_answer', hangs))
    this.onSilence(true)
  }

  #received(): void {
    this.#hasHeard = true
    if (!this.#isSilent) return
    this.#isSilent = false
    this.onSilence(false)
  }

  #rejectAll(error: KeeperError): void {
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer)
      reject(error)
    }
    this.#pending.clear()
  }

  #handleLine(line: string): void {
    const message = JSON.parse(line) as KeeperReply | KeeperEvent
    if ('event' in message) {
      if (message.event === 'unit.exit') this.onExit(message.with.key, message.with.run, message.with.exit)
      // A keeper of another version may send other events.
      else if (message.event === 'capture.failed') this.onCaptureFailed(message.with)
      else if (message.event === 'bridge.looped') this.onLooped(message.with)
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

type KeeperEvent = {
  [E in keyof KeeperEvents]: { readonly event: E; readonly with: KeeperEvents[E] }
}[keyof KeeperEvents]

interface KeeperReply {
  readonly id: number
  readonly result?: unknown
  readonly error?: { readonly code: KeeperErrorCode; readonly message: string }
}

/** What `connect` answers for a socket without a keeper (unix(7)). */
const absent = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET']

async function open(runDirectory: string): Promise<Socket> {
  try {
    const { path, release } = socketPath(runDirectory)
    try {
      const socket = connect(path)
      await once(socket, 'connect')
      return socket
    } finally {
      release()
    }
  } catch (cause) {
    if (!absent.includes((cause as NodeJS.ErrnoException).code ?? '')) throw cause
    throw new KeeperError('internal', 'the keeper has ended', { cause })
  }
}

/** The first exchange on a connection: the reply, and the bytes after it (of a console or a capture). */
async function ask(
  socket: Socket,
  op: string,
  input: unknown,
  { ms = helloMs, onLate }: { ms?: number; onLate?: (() => void) | undefined },
): Promise<[KeeperReply, Buffer]> {
  const lines = new LineReader(1 << 20)
  socket.write(`${JSON.stringify({ id: 0, op, with: input })}\n`)
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      clearTimeout(timer)
      socket.off('data', read).off('close', onClose)
      finish()
    }
    const onClose = () => settle(() => reject(new KeeperError('internal', 'the keeper has ended')))
    const timer = setTimeout(() => {
      if (onLate !== undefined) return onLate()
      settle(() => {
        socket.destroy()
        reject(new KeeperError('no_answer', hangs))
      })
    }, ms)
    const read = (bytes: Buffer) => {
      const end = bytes.indexOf(10)
      if (end < 0) return void lines.push(bytes)
      const [line] = lines.push(bytes.subarray(0, end + 1))
      socket.pause()
      settle(() => resolve([JSON.parse(line ?? '') as KeeperReply, bytes.subarray(end + 1)]))
    }
    socket.on('data', read).on('close', onClose)
    socket.on('error', () => {})
  })
}
