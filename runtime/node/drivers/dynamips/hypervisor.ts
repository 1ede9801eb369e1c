import type { Socket } from 'node:net'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { connectSocket } from '../../os/system/connect.ts'
import { LineReader } from '../../os/system/line-reader.ts'
import { commandText, type DynamipsReply, HypervisorError, parseReply } from './replies.ts'

/** The longest known line, a saved configuration in base64, has some 100 KB. */
const maxLineBytes = 1 << 20
/** Limits of one answer. */
const maxLines = 4096
const maxAnswerBytes = 4 << 20
/** Limit of queued commands. */
const maxPending = 64

interface CommandOptions {
  /** Timeout of the answer after the command was sent, ms. */
  readonly ms: number
  /** Cancels the wait for the answer. A command that was sent still runs, and the next one waits for its end. */
  readonly signal?: AbortSignal | undefined
}

interface Pending {
  readonly command: string
  readonly line: string
  readonly ms: number
  readonly resolve: (reply: DynamipsReply) => void
  readonly reject: (error: HypervisorError) => void
  readonly lines: string[]
  bytes: number
  timer: NodeJS.Timeout | undefined
}

/** A control connection to a dynamips process (hypervisor mode). Answers carry no number, so one command runs at a time. */
export class Hypervisor {
  /** Resolves when the connection is closed from either side. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #lines = new LineReader(maxLineBytes)
  /** The first command was sent; the others wait. */
  readonly #queue: Pending[] = []
  #failure: HypervisorError | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#receive(bytes as Buffer))
    socket.on('error', (cause) =>
      this.#fail(new HypervisorError('closed', 'The connection to dynamips broke', { cause })),
    )
    socket.on('close', () => this.#fail(new HypervisorError('closed', 'Dynamips closed the connection: it has ended')))
  }

  /** Connects within `ms`. */
  static async connect({ host = '127.0.0.1', port, ms }: { host?: string; port: number; ms: number }) {
    const socket = await connectSocket({ host, port }, ms).catch((cause: NodeJS.ErrnoException) => {
      throw new HypervisorError('unreachable', `Dynamips cannot be reached (${cause.code})`, { cause })
    })
    return new Hypervisor(socket)
  }

  /** Whether the connection takes commands. */
  get isOpen(): boolean {
    return this.#failure === undefined
  }

  /** Runs a command, such as `vm start`, after the commands before it. */
  async run(
    command: string,
    values: readonly (string | number)[],
    { ms, signal }: CommandOptions,
  ): Promise<DynamipsReply> {
    const line = commandText(command, values)
    if (this.#failure !== undefined) throw this.#failure
    if (signal?.aborted) throw aborted(command)
    if (this.#queue.length >= maxPending)
      throw new HypervisorError('timeout', `${command}: ${maxPending} commands are unanswered, dynamips hangs`)
    let pending: Pending | undefined
    const abandon = () => pending !== undefined && this.#abandon(pending)
    let stopListening = () => {}
    try {
      return await new Promise<DynamipsReply>((resolve, reject) => {
        pending = { command, line, ms, resolve, reject, lines: [], bytes: 0, timer: undefined }
        stopListening = onAbort(signal, abandon)
        this.#queue.push(pending)
        if (this.#queue.length === 1) this.#send()
      })
    } finally {
      stopListening()
    }
  }

  /** Closes the connection; dynamips keeps running. */
  close(): void {
    this.#fail(new HypervisorError('closed', 'The connection to dynamips was closed'))
  }

  #send(): void {
    const [pending] = this.#queue
    if (pending === undefined) return
    const { command, line, ms } = pending
    // The connection fails, because a late answer would be taken for the answer of the next command.
    const late = () => this.#fail(new HypervisorError('timeout', `${command}: no answer from dynamips within ${ms} ms`))
    pending.timer = setTimeout(late, ms)
    this.#socket.write(`${line}\n`)
  }

  #abandon(pending: Pending): void {
    const index = this.#queue.indexOf(pending)
    // The first command stays until its answer arrives.
    if (index > 0) this.#queue.splice(index, 1)
    pending.reject(aborted(pending.command))
  }

  #receive(bytes: Buffer): void {
    try {
      for (const line of this.#lines.push(bytes)) {
        if (this.#failure !== undefined) return
        this.#handle(line)
      }
    } catch (cause) {
      const message = `Dynamips does not speak its protocol: ${(cause as Error).message}`
      this.#fail(cause instanceof HypervisorError ? cause : new HypervisorError('protocol', message, { cause }))
    }
  }

  #handle(line: string): void {
    const reply = parseReply(line)
    const [pending] = this.#queue
    if (pending === undefined) throw new HypervisorError('protocol', 'Dynamips sent an answer without a command')
    if (reply.type === 'data') {
      pending.bytes += line.length
      if (pending.lines.push(reply.text) <= maxLines && pending.bytes <= maxAnswerBytes) return
      throw new HypervisorError('protocol', `${pending.command}: the answer of dynamips does not end`)
    }
    clearTimeout(pending.timer)
    this.#queue.shift()
    if (reply.type === 'done') pending.resolve({ lines: pending.lines, text: reply.text })
    else
      pending.reject(
        new HypervisorError('refused', `${pending.command}: ${reply.text.slice(0, 200)}`, { reply: reply.reply }),
      )
    this.#send()
  }

  #fail(error: HypervisorError): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    for (const { reject, timer } of this.#queue.splice(0)) {
      clearTimeout(timer)
      reject(error)
    }
    this.#socket.destroy()
  }
}

const aborted = (command: string) => new HypervisorError('aborted', `${command}: the caller cancelled`)
