import type { StartTimer } from '../../../../src/lib/async/pause.ts'
import type { CommandHost } from './commands/command.ts'
import { consoleCommands, findCommand } from './commands/index.ts'
import { pcName } from './commands/pc-name.ts'
import { banner } from './commands/show.ts'
import { LineEditor, utf8BytesOf } from './line-editor.ts'
import { parseMac } from './stack/address.ts'
import type { PcFiles } from './stack/directory-files.ts'
import { Gate } from './stack/gate.ts'
import { Net } from './stack/net.ts'

/** Maximum memory of lines typed ahead while a command runs, bytes; enough for a long configuration that is pasted. */
const maxWaiting = 4 << 20
/** Overhead of a line, bytes. */
const bytesOfLine = 64
/** How long a pc runs lines before it yields to other pcs, ms. */
const turnMs = 1
/** Maximum nesting of scripts; a script may load itself. */
const deepest = 8

export interface EmbeddedPcOptions {
  /** The name of the node, until `set pcname`; default: VPCS. */
  readonly name?: string | undefined
  /** Six bytes as text, 00:50:79:66:68:XX. */
  readonly mac: string
  /** Sends one Ethernet frame; the callee owns the buffer. */
  readonly send: (frame: Uint8Array) => void
  /** Console output, for a terminal without output processing. */
  readonly print: (bytes: Uint8Array) => void
  readonly files: PcFiles
  /** `quit` was typed. */
  readonly quit: () => void
  /** Resolves after all other pcs had a turn; absent: there is no other pc. */
  readonly turn?: () => Promise<void>
  /** Timer for all deferred work; absent: the system's timer. */
  readonly startTimer?: StartTimer
  /** For `show`. */
  readonly lport?: number
  readonly rhost?: string
  readonly rport?: number
}

/** A simulated PC with the command language of VPCS: one Ethernet interface and one console. */
export class EmbeddedPc {
  readonly #net: Net
  /** Closed while the reader of the console is behind. */
  readonly #reader = new Gate()
  readonly #editor: LineEditor
  readonly #machine: CommandHost
  readonly #print: (bytes: Uint8Array) => void
  readonly #turn: (() => Promise<void>) | undefined
  #waiting: string[] = []
  #waitingBytes = 0
  #hasRefused = false
  /** Start of the current turn. */
  #turnBegan = 0
  /** Buffer for the echo of the current input, so that many bytes make one piece of output. */
  #shown: string | undefined
  /** Aborts the running command, on Ctrl-C and at the end of the pc. */
  #running: AbortController | undefined
  #isBooting = true
  #isClosed = false
  #depth = 0

  constructor(options: EmbeddedPcOptions) {
    const print = (text: string) => {
      if (this.#isClosed) return
      if (this.#shown !== undefined) this.#shown += text
      else options.print(utf8BytesOf(text))
    }
    this.#print = options.print
    this.#turn = options.turn
    this.#net = new Net(parseMac(options.mac), options.send, options.startTimer)
    this.#editor = new LineEditor({
      print,
      entered: (line) => this.#enter(line),
      interrupted: () => this.#interrupt(),
      complete: (start) => consoleCommands.map(({ name }) => name).filter((name) => name.startsWith(start)),
      prompt: () => `${this.#machine.name}> `,
    })
    this.#machine = {
      net: this.#net,
      files: options.files,
      history: this.#editor.history,
      name: pcName(options.name ?? '') || 'VPCS',
      isEchoing: false,
      lport: options.lport ?? 20_000,
      rhost: options.rhost ?? '127.0.0.1',
      rport: options.rport ?? 30_000,
      print,
      quit: options.quit,
      script: (text) => this.#script(text),
      clearHistory: () => {
        this.#editor.history.length = 0
      },
    }
  }

  /** Handles a received frame. Never throws, not even for invalid bytes. */
  receive(frame: Uint8Array): void {
    if (!this.#isClosed) this.#net.receive(frame)
  }

  /** Bytes typed on the console. */
  type(bytes: Uint8Array): void {
    if (this.#isClosed) return
    this.#shown = ''
    this.#editor.type(bytes)
    const shown = this.#shown
    this.#shown = undefined
    if (shown !== '' && !this.#isClosed) this.#print(utf8BytesOf(shown))
  }

  /** Pauses or resumes the pc. A paused pc runs nothing and shows nothing, and drops frames. */
  hold(isHeld: boolean): void {
    if (isHeld) this.#net.gate.close()
    else this.#net.gate.open()
  }

  /** Has the pc run no further line, or go on: the reader of its console is behind. Frames are answered. */
  wait(isWaiting: boolean): void {
    if (isWaiting) this.#reader.close()
    else this.#reader.open()
  }

  /** Shows the banner, runs the startup script line by line, then shows the prompt. */
  async boot(script: string | undefined): Promise<void> {
    this.#machine.print(banner)
    if (script !== undefined) {
      this.#machine.print('\r\nExecuting the startup file\r\n\r\n')
      await this.#script(script)
    }
    this.#isBooting = false
    this.#prompt()
    await this.#runWaiting()
  }

  /** Ends every timer and the running command. */
  close(): void {
    this.#isClosed = true
    this.#running?.abort()
    this.#reader.open()
    this.#net.close()
  }

  #enter(line: string): void {
    const bytes = line.length + bytesOfLine
    if (this.#waitingBytes + bytes <= maxWaiting) {
      this.#waiting.push(line)
      this.#waitingBytes += bytes
    } else if (!this.#hasRefused) {
      this.#hasRefused = true
      this.#machine.print('Too much is typed ahead: lines are refused until the command has ended\r\n')
    }
    if (this.#running === undefined && !this.#isBooting) void this.#runWaiting()
  }

  /** Ctrl-C: ends the command and discards lines typed ahead, or clears the current line. */
  #interrupt(): void {
    this.#waiting = []
    this.#waitingBytes = 0
    this.#hasRefused = false
    if (this.#running !== undefined) this.#running.abort()
    else {
      this.#machine.print('^C\r\n')
      this.#prompt()
    }
  }

  async #runWaiting(): Promise<void> {
    for (let line = this.#next(); line !== undefined && !this.#isClosed; line = this.#next()) {
      await this.#run(line)
      this.#prompt()
    }
  }

  #next(): string | undefined {
    const line = this.#waiting.shift()
    if (line === undefined) this.#hasRefused = false
    else this.#waitingBytes -= line.length + bytesOfLine
    return line
  }

  /** Before a line runs: yields to other pcs after `turnMs`, and waits while the pc is paused. */
  async #takeTurn(): Promise<void> {
    const { gate } = this.#net
    if (gate.isClosed) await gate.pass()
    if (this.#reader.isClosed) await this.#reader.pass()
    if (this.#turn === undefined || performance.now() - this.#turnBegan < turnMs) return
    await this.#turn()
    this.#turnBegan = performance.now()
  }

  #prompt(): void {
    this.#machine.print('\r\n')
    this.#editor.showPrompt()
  }

  async #script(text: string): Promise<void> {
    if (this.#depth >= deepest) return this.#machine.print('Scripts are nested too deeply\r\n')
    this.#depth += 1
    const outer = this.#running
    // Ctrl-C ends the whole script, not only the current line.
    const controller = outer ?? new AbortController()
    this.#running = controller
    try {
      for (const line of text.split(/\r\n|\n|\r/)) {
        if (this.#isClosed || controller.signal.aborted) break
        await this.#takeTurn()
        if (this.#isClosed || controller.signal.aborted) break
        if (/^\s*[#!;]/.test(line)) continue
        this.#echo(line)
        await this.#execute(line.replace(/^\s*@/, ''), controller.signal)
      }
    } finally {
      this.#running = outer
      this.#depth -= 1
    }
  }

  /** Shows a line of a script before it runs, except lines that begin with @ or that print text themselves, as in VPCS. */
  #echo(line: string): void {
    const text = line.trim()
    if (!this.#machine.isEchoing || text === '' || text.startsWith('@')) return
    const [word = '', ...words] = text.split(/\s+/)
    const command = findCommand(word.toLowerCase())
    const name = typeof command === 'object' ? command.name : undefined
    const isShownItself = name === 'echo' || (name === 'sleep' && !/^\d+$/.test(words.join(' ')))
    if (!isShownItself) this.#machine.print(`${this.#machine.name}[1] ${text}\r\n`)
  }

  async #run(line: string): Promise<void> {
    const controller = new AbortController()
    this.#running = controller
    try {
      await this.#takeTurn()
      if (!this.#isClosed && !controller.signal.aborted) await this.#execute(line, controller.signal)
    } finally {
      this.#running = undefined
    }
  }

  async #execute(line: string, signal: AbortSignal): Promise<void> {
    const [word, ...words] = line.trim().split(/\s+/)
    // In VPCS a number selects one of nine pcs; here there is one.
    if (word === undefined || word === '' || word === '1') return
    const command = findCommand(word.toLowerCase())
    if (command === undefined || command === 'ambiguous') {
      const kind = command === 'ambiguous' ? 'Ambiguous' : 'Bad'
      return this.#machine.print(`${kind} command: "${line.trim().slice(0, 80)}". Use ? for help.\r\n`)
    }
    if (words[0] === '?' && command.details === undefined)
      return this.#machine.print(`\r\n${command.name} ${command.usage}\r\n  ${command.help}\r\n`)
    try {
      await command.run(this.#machine, words, signal)
    } catch (error) {
      this.#machine.print(`${command.name}: ${(error as Error).message}\r\n`)
    }
  }
}
