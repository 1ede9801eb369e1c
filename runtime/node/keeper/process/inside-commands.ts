import { closeSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { TerminalSize } from '../../../../src/model/schema/console-size.ts'
import { usualSize } from '../../os/system/pty.ts'
import { KeeperError } from '../protocol/error.ts'
import { commandGraceMs, terminalMs } from '../protocol/protocol.ts'
import type { DescriptorChannel } from './handed-descriptors.ts'
import { HandedTerminal } from './handed-terminal.ts'

/** Most commands that run at once in the namespaces of one unit, beside its own. */
const maxCommands = 16
/** Longest request, bytes; the holder of a container reads no more of one. */
const maxRequest = 60_000
/** Interval at which answers are looked for while one is awaited, ms. */
const lookMs = 10

type Answered = { readonly descriptor: number } | { readonly code: number; readonly reason: string }

/**
 * Further commands in the namespaces of a program that holds them: it is asked over the socket of handed descriptors. A request is
 * `tty` or `run`, its number, its longest time in seconds and the words of the command, each after a NUL; the answer is a terminal
 * under the name `tty NUMBER`, or the text `end NUMBER CODE REASON`.
 */
export class InsideCommands {
  readonly #channel: DescriptorChannel
  readonly #awaited = new Map<string, (answer: Answered) => void>()
  /** With the names that clients gave them. */
  readonly #terminals = new Map<HandedTerminal, string | undefined>()
  #next = 0
  #isLooking = false
  #isClosed = false

  constructor(channel: DescriptorChannel) {
    this.#channel = channel
  }

  /** Runs a command on a terminal of its own, which ends the command when it is closed. `name`: for `resize`. `spawn_failed`. */
  async terminal(words: readonly string[], name?: string): Promise<HandedTerminal> {
    const answer = await this.#ask('tty', words, terminalMs)
    if (!('descriptor' in answer))
      throw new KeeperError('spawn_failed', answer.reason || `it ended at once (exit code ${answer.code})`)
    const terminal = HandedTerminal.of(answer.descriptor)
    if (terminal === undefined) throw new KeeperError('spawn_failed', 'it has no terminal')
    // crun gives it none.
    terminal.resize(usualSize)
    this.#terminals.set(terminal, name)
    terminal.once('close', () => this.#terminals.delete(terminal))
    return terminal
  }

  /** Resizes the terminals of that name; `not_running` when there is none. */
  resize(name: string, size: TerminalSize): void {
    const found = [...this.#terminals].filter(([, it]) => it === name)
    if (found.length === 0) throw new KeeperError('not_running', `there is no terminal ${name}`)
    for (const [terminal] of found) terminal.resize(size)
  }

  /** Runs a command without a terminal, and kills it after `ms`; its exit code, 137 if it was killed. */
  async run(words: readonly string[], ms: number): Promise<number> {
    const answer = await this.#ask('run', words, ms)
    if (!('descriptor' in answer)) return answer.code
    closeSync(answer.descriptor)
    throw new KeeperError('spawn_failed', 'it answered with a descriptor')
  }

  /** The unit has ended, and with it all of its commands. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const terminal of this.#terminals.keys()) terminal.destroy()
    this.#channel.close()
  }

  async #ask(kind: 'tty' | 'run', words: readonly string[], ms: number): Promise<Answered> {
    if (this.#isClosed) throw notRunning()
    if (this.#awaited.size + this.#terminals.size >= maxCommands)
      throw new KeeperError('exists', `${maxCommands} further consoles and commands run already; end one of them`)
    const id = String(this.#next++)
    const request = [kind, id, String(Math.ceil(ms / 1000)), ...words].join('\0')
    if (Buffer.byteLength(request) > maxRequest) throw new KeeperError('bad_request', 'the command is too long')
    const answered = new Promise<Answered>((resolve) => this.#awaited.set(id, resolve))
    const seconds = Math.ceil(ms / 1000)
    try {
      this.#channel.send(request)
    } catch (cause) {
      this.#awaited.delete(id)
      throw new KeeperError('spawn_failed', `it cannot be asked: ${(cause as Error).message}`, { cause })
    }
    void this.#look()
    const late = new AbortController()
    const timeout = pause(seconds * 1000 + commandGraceMs, undefined, { signal: late.signal }).then(
      (): Answered => ({ code: 137, reason: 'it did not answer in time' }),
      (): Answered => ({ code: 137, reason: '' }),
    )
    try {
      const answer = await Promise.race([answered, timeout])
      if (this.#isClosed) throw notRunning()
      return answer
    } finally {
      this.#awaited.delete(id)
      late.abort()
    }
  }

  /** Takes answers while some are awaited. The socket has message bounds, which streams of Node do not know. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    while (this.#awaited.size > 0) {
      await pause(lookMs)
      if (this.#isClosed) break
      for (let next = this.#channel.next(); next !== undefined; next = this.#channel.next()) this.#take(next)
    }
    this.#isLooking = false
    if (this.#isClosed) for (const resolve of this.#awaited.values()) resolve({ code: 137, reason: '' })
  }

  #take({ name, descriptor }: { readonly name: string; readonly descriptor: number | undefined }): void {
    const [word, id = '', code = '', ...reason] = name.split(' ')
    const resolve = this.#awaited.get(id)
    if (descriptor !== undefined) {
      if (word === 'tty' && resolve !== undefined) return resolve({ descriptor })
      // Nobody waits for it any more: closing its terminal ends the command.
      return closeSync(descriptor)
    }
    if (word === 'end') resolve?.({ code: Number(code) || 0, reason: reason.join(' ').slice(0, 500) })
  }
}

const notRunning = () => new KeeperError('not_running', 'the program has ended')
