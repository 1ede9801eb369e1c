import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { TelnetStripper } from '../../../runtime/node/os/system/telnet.ts'
import { hangMs } from '../limits.ts'

const prompt = 'pb# '
/** N_TTY of Linux drops the rest of a longer one. */
const longestLine = 4095
/** Of what was seen, so much is in an error. */
const tail = 2000

export interface Outcome {
  readonly code: number
  readonly output: string
}

/** The shell of a guest on its serial console: one command at a time. It prints its prompt, and no echo. */
export class GuestShell {
  readonly #socket: Socket
  readonly #telnet = new TelnetStripper()
  readonly #text = new TextDecoder()
  /** What nothing waited for yet. */
  #seen = ''
  /** The end of all that was seen. */
  #tail = ''
  #wake: () => void = () => {}

  /** Whoever makes it closes it. */
  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      const text = this.#text.decode(this.#telnet.strip(bytes), { stream: true })
      this.#seen += text
      this.#tail = (this.#tail + text).slice(-tail)
      this.#wake()
    })
    socket.on('close', () => this.#wake())
    socket.on('error', () => {})
  }

  /** Connects to a console; the connection does not outlive the test. */
  static async connect(port: number, host = '127.0.0.1'): Promise<GuestShell> {
    const socket = connect(port, host)
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    return new GuestShell(socket)
  }

  close(): void {
    this.#socket.destroy()
  }

  /**
   * Resolves when the shell waits for commands: at first, and after a reboot. A prompt alone does not tell that, for a
   * console shows a new client what was there before.
   */
  async ready(ms = 90_000): Promise<void> {
    const deadline = Date.now() + ms
    const left = () => Math.max(1, deadline - Date.now())
    await this.shows(prompt, left())
    for (;;) {
      this.#seen = this.#seen.slice(this.#seen.lastIndexOf(prompt) + 1)
      const [typed, mark] = newMark()
      this.send(`echo ${typed}\n`)
      // Without an answer before the next prompt nobody read it.
      if ((await this.shows(new RegExp(`${mark}|${prompt}`), left())).endsWith(mark)) break
    }
    await this.shows(prompt, left())
  }

  /** What a command prints, without the newlines at its end; one that fails is an error with that. */
  async run(command: string, ms = hangMs): Promise<string> {
    const { code, output } = await this.attempt(command, ms)
    if (code !== 0) throw new Error(`${command}: exit code ${code}: ${output}`)
    return output
  }

  /** The same for a command that may fail. */
  async attempt(command: string, ms = hangMs): Promise<Outcome> {
    const [typedStart, start] = newMark()
    const [typedEnd, end] = newMark()
    const line = `echo ${typedStart}; eval ${quoted(command)}; printf '\\n%s %s\\n' ${typedEnd} $?\n`
    if (Buffer.byteLength(line) > longestLine) throw new Error(`${command}: longer than a terminal takes a line`)
    this.send(line)
    const shown = await this.shows(new RegExp(`${start}\r?\n[^]*\n${end} \\d+\r?\n`), ms, command)
    const [, output = '', code] = new RegExp(`${start}\r?\n([^]*)\n${end} (\\d+)\r?\n$`).exec(shown) ?? []
    await this.shows(prompt, ms)
    return { code: Number(code), output: output.replaceAll('\r\n', '\n').trimEnd() }
  }

  /** Repeats a command in the guest until it succeeds; its output then. */
  until(command: string, ms = hangMs): Promise<string> {
    return this.run(`until ${command}; do usleep 20000; done`, ms)
  }

  /** Types; a line needs its newline. */
  send(text: string): void {
    this.#socket.write(text)
  }

  /** What was shown up to and including the text, which is then forgotten. */
  async shows(text: string | RegExp, ms = hangMs, what = `${text}`): Promise<string> {
    const deadline = Date.now() + ms
    for (;;) {
      const end = endOf(text, this.#seen)
      if (end !== undefined) {
        const upTo = this.#seen.slice(0, end)
        this.#seen = this.#seen.slice(end)
        return upTo
      }
      const left = deadline - Date.now()
      const obstacle = this.#socket.closed ? 'the console closed' : left <= 0 ? `nothing within ${ms} ms` : undefined
      if (obstacle !== undefined) throw new Error(`${what}: ${obstacle}; the last that was seen:\n${this.#tail}`)
      await this.#more(left)
    }
  }

  /** Resolves when something came, or after the time. */
  #more(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function endOf(text: string | RegExp, seen: string): number | undefined {
  if (typeof text === 'string') return seen.includes(text) ? seen.indexOf(text) + text.length : undefined
  const match = text.exec(seen)
  return match === null ? undefined : match.index + match[0].length
}

/** In one line, so that the command cannot take the rest as its input. */
const quoted = (command: string): string => `$'${command.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n')}'`

/** A word that nothing else prints: as it is typed, for a terminal with an echo shows that, and as it is printed. */
function newMark(): readonly [typed: string, printed: string] {
  const id = randomBytes(6).toString('hex')
  return [`pb''-${id}`, `pb-${id}`]
}
