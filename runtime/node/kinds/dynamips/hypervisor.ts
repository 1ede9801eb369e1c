import { createConnection, type Socket } from 'node:net'
import { onAbort } from '../../../../src/async/abort.ts'
import { LineReader } from '../../system/line-reader.ts'
import { HypervisorError } from './hypervisor-error.ts'
import { commandText, type DynamipsReply, parseReply } from './replies.ts'

export { HypervisorError, type HypervisorErrorCode } from './hypervisor-error.ts'
export type { DynamipsReply } from './replies.ts'

/** The longest line known (a saved configuration in base64) has some hundred KB. */
const maxLineBytes = 1 << 20
/** Of one answer. */
const maxLines = 4096
const maxAnswerBytes = 4 << 20
/** More commands than this without an answer: dynamips hangs, and so does whoever sends them. */
const maxPending = 64

export interface HypervisorConnect {
  readonly host?: string
  readonly port: number
  /** Bound of connecting, ms. */
  readonly ms: number
}

export interface CommandOptions {
  /** Bound of the answer once it is this command's turn, ms. */
  readonly ms: number
  /** Ends the wait for the answer. A command that dynamips has begun is not undone by it, and the next waits for its end. */
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

/** A control connection to one dynamips (its hypervisor mode). Answers have no number, so there is one command at a time. */
export class Hypervisor {
  /** Resolves when the connection is gone, whoever ended it; a dynamips that ends takes it along. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #lines = new LineReader(maxLineBytes)
  /** The first one is what dynamips does now. */
  readonly #queue: Pending[] = []
  #end: HypervisorError | undefined

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

  static async connect({ host = '127.0.0.1', port, ms }: HypervisorConnect): Promise<Hypervisor> {
    return new Hypervisor(await open(host, port, ms))
  }

  /** Whether commands can still be given. */
  get isOpen(): boolean {
    return this.#end === undefined
  }

  /** Gives a command (`vm start`) with its values when those before it are done. */
  async run(
    command: string,
    values: readonly (string | number)[],
    { ms, signal }: CommandOptions,
  ): Promise<DynamipsReply> {
    const line = commandText(command, values)
    if (this.#end !== undefined) throw this.#end
    if (signal?.aborted) throw aborted(command)
    if (this.#queue.length >= maxPending) {
      throw new HypervisorError('timeout', `${command}: ${maxPending} commands have no answer yet, dynamips hangs`)
    }
    let pending: Pending | undefined
    const abandon = () => pending !== undefined && this.#abandon(pending)
    let forget = () => {}
    try {
      return await new Promise<DynamipsReply>((resolve, reject) => {
        pending = { command, line, ms, resolve, reject, lines: [], bytes: 0, timer: undefined }
        forget = onAbort(signal, abandon)
        this.#queue.push(pending)
        if (this.#queue.length === 1) this.#send()
      })
    } finally {
      forget()
    }
  }

  /** Lets go of the connection; dynamips runs on. Safe to call twice. */
  close(): void {
    this.#fail(new HypervisorError('closed', 'The connection to dynamips was closed'))
  }

  #send(): void {
    const [pending] = this.#queue
    if (pending === undefined) return
    const { command, line, ms } = pending
    // An answer that comes later would be taken for that of the next command.
    const late = () => this.#fail(new HypervisorError('timeout', `${command}: no answer from dynamips within ${ms} ms`))
    pending.timer = setTimeout(late, ms)
    this.#socket.write(`${line}\n`)
  }

  #abandon(pending: Pending): void {
    const index = this.#queue.indexOf(pending)
    // The one that dynamips is at stays until it has answered.
    if (index > 0) this.#queue.splice(index, 1)
    pending.reject(aborted(pending.command))
  }

  #receive(bytes: Buffer): void {
    try {
      for (const line of this.#lines.push(bytes)) {
        if (this.#end !== undefined) return
        this.#take(line)
      }
    } catch (cause) {
      const message = `What dynamips says is not its protocol: ${(cause as Error).message}`
      this.#fail(cause instanceof HypervisorError ? cause : new HypervisorError('protocol', message, { cause }))
    }
  }

  #take(line: string): void {
    const reply = parseReply(line)
    const [pending] = this.#queue
    if (pending === undefined) throw new HypervisorError('protocol', 'Dynamips answered what nobody asked')
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
    if (this.#end !== undefined) return
    this.#end = error
    for (const { reject, timer } of this.#queue.splice(0)) {
      clearTimeout(timer)
      reject(error)
    }
    this.#socket.destroy()
  }
}

const aborted = (command: string) => new HypervisorError('aborted', `${command}: nobody waits for it any more`)

function open(host: string, port: number, ms: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host, port })
    const timer = setTimeout(() => socket.destroy(Object.assign(new Error('late'), { code: 'ETIMEDOUT' })), ms)
    const settle = () => {
      clearTimeout(timer)
      socket.off('error', failed)
    }
    const failed = (error: Error) => {
      settle()
      const { code } = error as NodeJS.ErrnoException
      reject(new HypervisorError('unreachable', `Dynamips cannot be reached (${code})`, { cause: error }))
    }
    socket.once('error', failed)
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
  })
}
