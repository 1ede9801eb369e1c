import { connect as connectTo, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeeperError } from '../protocol/error.ts'
import type { AttachedSpec } from '../protocol/protocol.ts'
import { type InputTaken, InputWindow } from './input-window.ts'
import type { Runner, UnitEnd } from './runner.ts'

const retryMs = 50
/** Timeout of a reconnect, ms: the program may only have restarted. */
const againMs = 500

/** A guest of another program: the keeper holds only its serial port. The unit ends when the port is gone. */
export class AttachedRunner implements Runner {
  readonly pid = 0
  readonly ended: Promise<UnitEnd>
  readonly #over = new AbortController()
  readonly #typed = new InputWindow()
  #socket: Socket | undefined

  constructor(spec: AttachedSpec, output: (bytes: Uint8Array) => void) {
    // A failure ends this unit only.
    this.ended = this.#hold(spec, output).catch(() => ({ code: null, signal: null }))
  }

  input(bytes: Uint8Array): InputTaken {
    const socket = this.#socket
    if (!socket?.writable) return { isTaken: false }
    return this.#typed.send(socket, bytes)
  }

  hold(): void {
    throw new KeeperError('unsupported', 'a guest of another program cannot be held')
  }

  limit(): void {
    throw new KeeperError('unsupported', 'the processor time of a guest of another program cannot be limited')
  }

  /** Closes the connection. The other program ends the guest. */
  stop(): Promise<UnitEnd> {
    this.#over.abort()
    this.#socket?.destroy()
    return this.ended
  }

  async #hold({ ready_ms, ...address }: AttachedSpec, output: (bytes: Uint8Array) => void): Promise<UnitEnd> {
    let timeoutMs = ready_ms
    for (;;) {
      const socket = await this.#connect(address, timeoutMs)
      if (socket === undefined) return { code: timeoutMs === againMs ? 0 : null, signal: null }
      this.#socket = socket
      socket.on('data', output)
      await new Promise((resolve) => socket.once('close', resolve))
      this.#socket = undefined
      timeoutMs = againMs
    }
  }

  /** The connection; undefined after the timeout, or when stopped. */
  async #connect({ path, port }: Pick<AttachedSpec, 'path' | 'port'>, ms: number): Promise<Socket | undefined> {
    const deadline = Date.now() + ms
    while (!this.#over.signal.aborted && Date.now() <= deadline) {
      const socket = path === undefined ? connectTo({ port: port ?? 0, host: '127.0.0.1' }) : connectTo({ path })
      const isConnected = await new Promise<boolean>((resolve) => {
        socket.once('connect', () => resolve(true))
        // A later error closes the connection; the `close` event handles that.
        socket.on('error', () => resolve(false))
      })
      if (isConnected && !this.#over.signal.aborted) return socket.setNoDelay(true).setKeepAlive(true, 30_000)
      socket.destroy()
      await delay(retryMs, undefined, { signal: this.#over.signal }).catch(
        ignore('it was aborted, as the next round sees'),
      )
    }
    return undefined
  }
}
