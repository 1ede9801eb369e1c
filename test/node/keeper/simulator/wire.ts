import { onTestFinished } from 'vitest'
import { EmbeddedPc } from '../../../../runtime/node/keeper/simulator/embedded-pc.ts'
import { hangMs } from '../../../support/limits.ts'

/** A wire that every frame of one end reaches all others on, at once but in turn. */
export class Wire {
  readonly #ends = new Set<(frame: Uint8Array) => void>()
  readonly frames: Uint8Array[] = []
  isCut = false

  join(receive: (frame: Uint8Array) => void): (frame: Uint8Array) => void {
    this.#ends.add(receive)
    return (frame) => {
      this.frames.push(frame)
      if (this.isCut) return
      for (const end of this.#ends) if (end !== receive) queueMicrotask(() => end(frame))
    }
  }
}

/** A pc whose console can be typed on and waited for. */
export class TestPc {
  readonly pc: EmbeddedPc
  readonly files = new Map<string, string>()
  quits = 0
  shown = ''
  #wake = () => {}

  constructor(wire: Wire, number: number) {
    const send = wire.join((frame) => this.pc.receive(frame))
    this.pc = new EmbeddedPc({
      mac: `00:50:79:66:68:${number.toString(16).padStart(2, '0')}`,
      send,
      print: (bytes) => {
        this.shown += new TextDecoder().decode(bytes)
        this.#wake()
      },
      files: {
        read: async (name) => this.files.get(name),
        write: async (name, text) => void this.files.set(name, text),
      },
      quit: () => {
        this.quits += 1
      },
    })
    onTestFinished(() => this.pc.close())
  }

  /** A pc that has booted, with these lines as its startup script. */
  static async boot(wire: Wire, number: number, ...script: readonly string[]): Promise<TestPc> {
    const it = new TestPc(wire, number)
    await it.pc.boot([`set pcname PC${number}`, ...script].join('\n'))
    it.shown = ''
    return it
  }

  type(text: string): void {
    this.pc.type(new TextEncoder().encode(text))
  }

  /** Runs a command; what it showed until the next prompt. */
  async run(command: string, ms = hangMs): Promise<string> {
    this.shown = ''
    this.type(`${command}\r`)
    await this.until(/\r\n\r\S+> $/, ms)
    return this.shown.slice(command.length + 2).replace(/\r\n\r\S+> $/, '')
  }

  async until(pattern: RegExp, ms = hangMs): Promise<void> {
    const deadline = Date.now() + ms
    while (!pattern.test(this.shown)) {
      const left = deadline - Date.now()
      if (left <= 0) throw new Error(`timed out before ${pattern}: ${JSON.stringify(this.shown)}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}
