import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { hangMs } from './limits.ts'

/** A raw client of a console, with `expect` in the sense of the old tool: it waits for a text and gives what came before. */
export class Terminal {
  readonly #socket: Socket
  #seen = ''
  #closed = false
  #wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes) => {
      // The negotiation is three bytes a command and nothing here answers it.
      this.#seen += bytes.toString('latin1').replace(/\xff[\xfb-\xfe][\s\S]/g, '')
      this.#wake()
    })
    socket.on('close', () => {
      this.#closed = true
      this.#wake()
    })
    socket.on('error', () => {})
    onTestFinished(() => {
      socket.destroy()
    })
  }

  static async connect(port: number, host = '127.0.0.1'): Promise<Terminal> {
    const socket = connect(port, host)
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new Terminal(socket)
  }

  /** Stops reading, as a client does that hangs. */
  pause(): void {
    this.#socket.pause()
  }

  type(text: string): void {
    this.#socket.write(text)
  }

  /** What was shown up to and including the text; that much is then forgotten. Rejects after `ms`, or when the console closes. */
  async expect(text: string | RegExp, ms = hangMs): Promise<string> {
    const deadline = Date.now() + ms
    for (;;) {
      const at = typeof text === 'string' ? this.#seen.indexOf(text) : this.#seen.search(text)
      if (at >= 0) {
        const length = typeof text === 'string' ? text.length : (text.exec(this.#seen)?.[0].length ?? 0)
        const upTo = this.#seen.slice(0, at + length)
        this.#seen = this.#seen.slice(at + length)
        return upTo
      }
      const left = deadline - Date.now()
      if (this.#closed || left <= 0) {
        throw new Error(`${this.#closed ? 'closed' : 'timed out'} before ${text}; seen: ${JSON.stringify(this.#seen)}`)
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Resolves when the other side has closed the connection. */
  async closed(): Promise<void> {
    if (!this.#closed) await new Promise<void>((resolve) => this.#socket.once('close', () => resolve()))
  }
}
