import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { encodeTelnet, TelnetStripper } from '../../os/system/telnet.ts'
import { type InputTaken, InputWindow } from './input-window.ts'

const retryMs = 50
/** Between two tries when the program has not listened for `hurryMs`, ms. */
const slowRetryMs = 1000
const hurryMs = 60_000
const [CR, LF] = [13, 10]

/** The console of a program that serves it by telnet at a loopback address: connects whenever the program listens there. */
export class ServedConsole {
  readonly #over = new AbortController()
  readonly #typed = new InputWindow()
  #socket: Socket | undefined
  #isAfterCr = false

  constructor(address: { readonly host: string; readonly port: number }, output: (bytes: Uint8Array) => void) {
    void this.#hold(address, output).catch(ignore('the program keeps running without a console'))
  }

  /** Sends CR for CR LF and for LF, as the Enter key of a serial terminal does. */
  input(bytes: Uint8Array): InputTaken {
    if (!this.#socket?.writable) return { isTaken: false }
    const keys: number[] = []
    for (const byte of bytes) {
      if (byte !== LF) keys.push(byte)
      else if (!this.#isAfterCr) keys.push(CR)
      this.#isAfterCr = byte === CR
    }
    return this.#typed.send(this.#socket, encodeTelnet(Uint8Array.from(keys)))
  }

  close(): void {
    this.#over.abort()
    this.#socket?.destroy()
  }

  async #hold(address: { readonly host: string; readonly port: number }, output: (bytes: Uint8Array) => void) {
    let since = performance.now()
    while (!this.#over.signal.aborted) {
      const socket = connect(address)
      const telnet = new TelnetStripper()
      socket.setNoDelay(true).setKeepAlive(true, 30_000)
      socket.once('connect', () => {
        if (this.#over.signal.aborted) socket.destroy()
        this.#socket = socket
      })
      socket.on('data', (bytes) => output(telnet.strip(bytes as Buffer)))
      socket.on('error', ignore('the event `close` follows'))
      await new Promise((resolve) => socket.once('close', resolve))
      if (this.#socket === socket) since = performance.now()
      this.#socket = undefined
      this.#typed.close()
      const ms = performance.now() - since < hurryMs ? retryMs : slowRetryMs
      await pause(ms, undefined, { signal: this.#over.signal }).catch(ignore('the loop checks the signal'))
    }
  }
}
