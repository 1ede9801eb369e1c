import { createConnection, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { onAbort } from '../../../../src/async/abort.ts'
import { ignore } from '../../../../src/async/ignore.ts'
import { withTimeout } from '../../../../src/async/timeout.ts'
import { LineReader } from '../../system/line-reader.ts'
import { QmpError } from './qmp-error.ts'

export { QmpError, type QmpErrorCode } from './qmp-error.ts'

/** The longest answer known (the schema of QEMU 9) has 400 KB. */
const maxLineBytes = 4 << 20
/** More commands than this without an answer: the emulator hangs, and so does whoever sends them. */
const maxPending = 64
/** Between two attempts to reach a socket that is not there yet, ms. */
const retryMs = 5

/** Why the emulator is about to end, or (`guest-reset`, ...) would, of SHUTDOWN. */
export type ShutdownReason =
  | 'none'
  | 'host-error'
  | 'host-qmp-quit'
  | 'host-qmp-system-reset'
  | 'host-signal'
  | 'host-ui'
  | 'guest-shutdown'
  | 'guest-reset'
  | 'guest-panic'
  | 'subsystem-reset'
  | 'snapshot-load'

/** What the emulator tells by itself. Versions before 4.0 give SHUTDOWN no reason. */
export type QmpEvent =
  | { readonly event: 'SHUTDOWN'; readonly data: { readonly guest: boolean; readonly reason?: ShutdownReason } }
  | { readonly event: 'RESET'; readonly data: { readonly guest: boolean; readonly reason?: ShutdownReason } }
  | { readonly event: 'STOP' | 'RESUME' | 'POWERDOWN'; readonly data?: undefined }
  | { readonly event: 'BLOCK_IO_ERROR'; readonly data: BlockIoError }
  | { readonly event: 'OTHER'; readonly name: string; readonly data: Readonly<Record<string, unknown>> }

export interface BlockIoError {
  readonly device: string
  readonly operation: 'read' | 'write'
  /** `stop`: the guest stands still until it is resumed. */
  readonly action: 'ignore' | 'report' | 'stop'
  /** Whether the disk of the host is full. */
  readonly nospace?: boolean
  readonly reason: string
}

export interface QmpConnect {
  /** Path of the UNIX socket. */
  readonly path: string
  /** Bound of connecting and greeting together, ms. */
  readonly ms: number
  /** Ends the wait early, such as when the process is known to have ended. */
  readonly signal?: AbortSignal
}

export interface QmpVersion {
  readonly major: number
  readonly minor: number
  readonly micro: number
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: QmpError) => void
}

/** A monitor connection to one running emulator. A monitor has one client at a time. */
export class Qmp {
  /** Resolves when the connection is gone, whoever ended it; an emulator that ends takes it along. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #lines = new LineReader(maxLineBytes)
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Set<(event: QmpEvent) => void>()
  readonly #greeting: Promise<QmpVersion>
  #greeted: Pending | undefined
  #lastId = 0
  #end: QmpError | undefined
  #version: QmpVersion = { major: 0, minor: 0, micro: 0 }

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#greeting = new Promise<unknown>((resolve, reject) => {
      this.#greeted = { resolve, reject }
    }) as Promise<QmpVersion>
    this.#greeting.catch(ignore('who waits for the greeting is told'))
    this.closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('data', (bytes) => this.#receive(bytes as Buffer))
    socket.on('error', (cause) => this.#fail(new QmpError('closed', 'The connection to the emulator broke', { cause })))
    socket.on('close', () => this.#fail(new QmpError('closed', 'The emulator closed its monitor: it has ended')))
  }

  /** Connects, waits for the greeting and negotiates; the socket may appear a moment later than the process. */
  static async connect({ path, ms, signal }: QmpConnect): Promise<Qmp> {
    const deadline = Date.now() + ms
    const qmp = new Qmp(await open(path, deadline, signal))
    const abort = () => qmp.#fail(new QmpError('closed', 'The emulator ended before its monitor answered'))
    const forget = onAbort(signal, abort)
    try {
      const silent = `The monitor of the emulator said nothing for ${ms} ms: it hangs, or somebody else uses it`
      qmp.#version = await within(qmp.#greeting, Math.max(1, deadline - Date.now()), silent)
      await qmp.execute('qmp_capabilities', {}, Math.max(1, deadline - Date.now()))
      return qmp
    } catch (error) {
      qmp.close()
      throw error
    } finally {
      forget()
    }
  }

  get version(): QmpVersion {
    return this.#version
  }

  /** Whether commands can still be given. */
  get isOpen(): boolean {
    return this.#end === undefined
  }

  /** Gives a command and waits for its answer at most `ms`; an answer that comes later is dropped. */
  async execute<T = unknown>(command: string, args: Readonly<Record<string, unknown>>, ms: number): Promise<T> {
    if (this.#end !== undefined) throw this.#end
    if (this.#pending.size >= maxPending) {
      throw new QmpError('timeout', `${command}: ${maxPending} commands have no answer yet, the emulator hangs`)
    }
    const id = ++this.#lastId
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
    })
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`)
    try {
      return (await within(answer, ms, `${command}: the emulator did not answer within ${ms} ms`)) as T
    } catch (error) {
      if (error instanceof QmpError && error.code === 'refused') {
        throw new QmpError('refused', `${command}: ${error.message}`, { qmpClass: error.qmpClass ?? '', cause: error })
      }
      throw error
    } finally {
      this.#pending.delete(id)
    }
  }

  /** Calls the listener for every event from now on; the function that comes back ends that. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    // A set has every function once, and the same one may be given twice.
    const own = (event: QmpEvent) => listener(event)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  /** The next event that fits; `closed` when the emulator ends before. Subscribed when the call returns. */
  async nextEvent(fits: (event: QmpEvent) => boolean, ms: number): Promise<QmpEvent> {
    if (this.#end !== undefined) throw this.#end
    let stop = () => {}
    const found = new Promise<QmpEvent>((resolve) => {
      stop = this.onEvent((event) => {
        if (fits(event)) resolve(event)
      })
    })
    try {
      const ended = this.closed.then(() => {
        throw this.#end ?? new QmpError('closed', 'The emulator has ended')
      })
      return await within(Promise.race([found, ended]), ms, `The emulator did not tell what was waited for in ${ms} ms`)
    } finally {
      stop()
    }
  }

  /** Lets go of the monitor; the emulator runs on. Safe to call twice. */
  close(): void {
    this.#fail(new QmpError('closed', 'The monitor connection was closed'))
  }

  #receive(bytes: Buffer): void {
    if (this.#end !== undefined) return
    try {
      for (const line of this.#lines.push(bytes)) if (line.trim() !== '') this.#message(parse(line))
    } catch (cause) {
      const { message } = cause as Error
      this.#fail(new QmpError('protocol', `What the monitor says is not QMP: ${message}`, { cause }))
    }
  }

  #message(message: Readonly<Record<string, unknown>>): void {
    if (isRecord(message.QMP)) return this.#greeted?.resolve(versionIn(message.QMP))
    if (typeof message.event === 'string') return this.#tell(eventIn(message.event, message.data))
    const pending = this.#pending.get(Number(message.id))
    // The answer to a command that nobody waits for any more.
    if (pending === undefined) return
    if (!isRecord(message.error)) return pending.resolve(message.return)
    const { class: qmpClass, desc } = message.error
    pending.reject(new QmpError('refused', String(desc), { qmpClass: String(qmpClass) }))
  }

  #tell(event: QmpEvent): void {
    for (const listener of [...this.#listeners]) listener(event)
  }

  #fail(error: QmpError): void {
    if (this.#end !== undefined) return
    this.#end = error
    this.#greeted?.reject(error)
    for (const { reject } of this.#pending.values()) reject(error)
    this.#socket.destroy()
  }
}

async function open(path: string, deadline: number, signal: AbortSignal | undefined): Promise<Socket> {
  for (;;) {
    if (signal?.aborted) throw new QmpError('closed', 'The emulator ended before its monitor was there')
    try {
      return await connectOnce(path)
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      // Not bound yet, or bound and not yet listened on; no event tells of either.
      const isEarly = code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'EAGAIN'
      if (!isEarly || Date.now() + retryMs >= deadline) {
        throw new QmpError('unreachable', `The monitor of the emulator cannot be reached (${code})`, { cause })
      }
      await pause(retryMs, undefined, signal === undefined ? {} : { signal }).catch(
        ignore('it was aborted, as the next round sees'),
      )
    }
  }
}

function connectOnce(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path)
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

const within = <T>(promise: Promise<T>, ms: number, message: string): Promise<T> =>
  withTimeout(promise, ms, () => {
    throw new QmpError('timeout', message)
  })

function parse(line: string): Readonly<Record<string, unknown>> {
  const message: unknown = JSON.parse(line)
  if (!isRecord(message)) throw new Error('not an object')
  return message
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function versionIn({ version }: Readonly<Record<string, unknown>>): QmpVersion {
  const qemu = isRecord(version) && isRecord(version.qemu) ? version.qemu : {}
  return { major: Number(qemu.major ?? 0), minor: Number(qemu.minor ?? 0), micro: Number(qemu.micro ?? 0) }
}

const known = new Set(['SHUTDOWN', 'RESET', 'STOP', 'RESUME', 'POWERDOWN', 'BLOCK_IO_ERROR'])

/** What the emulator says of its own events is taken as its documentation promises. */
function eventIn(name: string, data: unknown): QmpEvent {
  const content = isRecord(data) ? data : {}
  return known.has(name)
    ? ({ event: name, data: content } as unknown as QmpEvent)
    : { event: 'OTHER', name, data: content }
}
