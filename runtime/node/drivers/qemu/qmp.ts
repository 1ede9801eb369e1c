import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { connectSocket } from '../../os/system/connect.ts'
import { LineReader } from '../../os/system/line-reader.ts'

/** The longest known answer, the schema of QEMU 9, has 400 KB. */
const maxLineBytes = 4 << 20
/** Limit of commands without an answer. */
const maxPending = 64
/** Interval of attempts to connect to a socket that does not exist yet, ms. */
const retryMs = 5

/**
 * `unreachable`: no connection; `silent`: the monitor did not greet in time; `timeout`: no answer in time; `refused`: the emulator answered with an error; `closed`: the
 * emulator ended, or the client was closed; `protocol`: the answer is not QMP.
 */
type QmpErrorCode = 'unreachable' | 'silent' | 'timeout' | 'refused' | 'closed' | 'protocol'

/** A failed command or monitor connection. */
export class QmpError extends Error {
  override readonly name = 'QmpError'
  readonly code: QmpErrorCode
  /** The error class of the emulator, such as `DeviceNotFound`. */
  readonly qmpClass: string | undefined

  constructor(code: QmpErrorCode, message: string, options: ErrorOptions & { qmpClass?: string } = {}) {
    super(message, options)
    this.code = code
    this.qmpClass = options.qmpClass
  }
}

/** An event of the emulator (QEMU QMP reference). */
export type QmpEvent = { readonly event: string; readonly data: Readonly<Record<string, unknown>> }

interface QmpConnect {
  /** Path of the UNIX socket. */
  readonly path: string
  /** Timeout of the connection with the greeting, ms. */
  readonly ms: number
  /** Cancels the wait. */
  readonly signal?: AbortSignal
}

export type QmpVersion = { readonly major: number; readonly minor: number; readonly micro: number }

type Pending = { readonly resolve: (value: unknown) => void; readonly reject: (error: QmpError) => void }

/** A monitor connection to a running emulator. A monitor takes one client at a time. */
export class Qmp {
  /** Resolves when the connection is closed from either side. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #lines = new LineReader(maxLineBytes)
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Set<(event: QmpEvent) => void>()
  /** The waits for events, which the end of the connection rejects. */
  readonly #waits = new Set<(error: QmpError) => void>()
  readonly #greeting: Promise<QmpVersion>
  #greeted: Pending | undefined
  #lastId = 0
  #failure: QmpError | undefined
  #version: QmpVersion = { major: 0, minor: 0, micro: 0 }

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#greeting = new Promise<unknown>((resolve, reject) => {
      this.#greeted = { resolve, reject }
    }) as Promise<QmpVersion>
    this.#greeting.catch(ignore('`connect` awaits it'))
    this.closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('data', (bytes) => this.#receive(bytes as Buffer))
    socket.on('error', (cause) => this.#fail(new QmpError('closed', 'The connection to the emulator broke', { cause })))
    socket.on('close', () => this.#fail(new QmpError('closed', 'The emulator closed its monitor: it has ended')))
  }

  /** Connects, also to a socket that appears after the start of the process, and negotiates capabilities. */
  static async connect({ path, ms, signal }: QmpConnect): Promise<Qmp> {
    const deadline = Date.now() + ms
    const qmp = new Qmp(await open(path, deadline, signal))
    const abort = () => qmp.#fail(new QmpError('closed', 'The emulator ended before its monitor answered'))
    const stopListening = onAbort(signal, abort)
    try {
      const silent = `The monitor of the emulator sent nothing for ${ms} ms: it hangs, or another client uses it`
      qmp.#version = await within(qmp.#greeting, Math.max(1, deadline - Date.now()), silent)
      await qmp.execute('qmp_capabilities', {}, Math.max(1, deadline - Date.now()))
      return qmp
    } catch (error) {
      qmp.close()
      if (error instanceof QmpError && error.code === 'timeout')
        throw new QmpError('silent', error.message, { cause: error })
      throw error
    } finally {
      stopListening()
    }
  }

  get version(): QmpVersion {
    return this.#version
  }

  /** Whether the connection takes commands. */
  get isOpen(): boolean {
    return this.#failure === undefined
  }

  /** Runs a command; an answer after `ms` is dropped. */
  async execute<T = unknown>(command: string, args: Readonly<Record<string, unknown>>, ms: number): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#pending.size >= maxPending)
      throw new QmpError('timeout', `${command}: ${maxPending} commands are unanswered, the emulator hangs`)
    const id = ++this.#lastId
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
    })
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`)
    try {
      return (await within(answer, ms, `${command}: the emulator did not answer within ${ms} ms`)) as T
    } catch (error) {
      if (error instanceof QmpError && error.code === 'refused')
        throw new QmpError('refused', `${command}: ${error.message}`, { qmpClass: error.qmpClass ?? '', cause: error })
      throw error
    } finally {
      this.#pending.delete(id)
    }
  }

  /** Calls the listener for each event; the result ends that. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * The next event that fits; `closed` when the emulator ends first. The subscription begins with the call; the abort of `signal` ends it, and
   * rejects with its reason.
   */
  async nextEvent(fits: (event: QmpEvent) => boolean, ms: number, signal?: AbortSignal): Promise<QmpEvent> {
    if (this.#failure !== undefined) throw this.#failure
    let end = () => {}
    const next = new Promise<QmpEvent>((resolve, reject) => {
      const stop = this.onEvent((event) => {
        if (fits(event)) resolve(event)
      })
      const forget = onAbort(signal, () => reject(signal?.reason))
      this.#waits.add(reject)
      end = () => {
        stop()
        forget()
        this.#waits.delete(reject)
      }
    })
    try {
      return await within(next, ms, `The emulator did not send the expected event within ${ms} ms`)
    } finally {
      end()
    }
  }

  /** Closes the connection; the emulator keeps running. */
  close(): void {
    this.#fail(new QmpError('closed', 'The monitor connection was closed'))
  }

  #receive(bytes: Buffer): void {
    if (this.#failure !== undefined) return
    try {
      for (const line of this.#lines.push(bytes)) if (line.trim() !== '') this.#message(parse(line))
    } catch (cause) {
      const { message } = cause as Error
      this.#fail(new QmpError('protocol', `The monitor does not speak QMP: ${message}`, { cause }))
    }
  }

  #message(message: Readonly<Record<string, unknown>>): void {
    if (isRecord(message.QMP)) return this.#greeted?.resolve(versionIn(message.QMP))
    if (typeof message.event === 'string')
      return this.#emit({ event: message.event, data: isRecord(message.data) ? message.data : {} })
    const pending = this.#pending.get(Number(message.id))
    // Undefined after the timeout of the command.
    if (pending === undefined) return
    if (!isRecord(message.error)) return pending.resolve(message.return)
    const { class: qmpClass, desc } = message.error
    pending.reject(new QmpError('refused', String(desc), { qmpClass: String(qmpClass) }))
  }

  #emit(event: QmpEvent): void {
    for (const listener of [...this.#listeners]) listener(event)
  }

  #fail(error: QmpError): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    this.#greeted?.reject(error)
    for (const { reject } of this.#pending.values()) reject(error)
    for (const reject of this.#waits) reject(error)
    this.#socket.destroy()
  }
}

async function open(path: string, deadline: number, signal: AbortSignal | undefined): Promise<Socket> {
  for (;;) {
    if (signal?.aborted) throw new QmpError('closed', 'The emulator ended before its monitor was available')
    try {
      return await connectSocket({ path }, Math.max(1, deadline - Date.now()))
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      // The socket is not bound yet, or does not listen yet.
      const isEarly = code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'EAGAIN'
      if (!isEarly || Date.now() + retryMs >= deadline)
        throw new QmpError('unreachable', `The monitor of the emulator cannot be reached (${code})`, { cause })
      await pause(retryMs, undefined, signal === undefined ? {} : { signal }).catch(
        ignore('the loop checks the signal'),
      )
    }
  }
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
