import { closeSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import type { TerminalSize } from '../../../../src/model/schema/console-size.ts'
import { setTerminalSize } from '../../os/system/pty.ts'

/** The terminal of a program in namespaces of its own, which has handed its master over. */
export class HandedTerminal extends ReadStream {
  readonly #descriptor: number

  private constructor(descriptor: number) {
    super(descriptor)
    this.#descriptor = descriptor
    // It reads EIO when the last process has closed the terminal.
    this.on('error', () => this.destroy())
  }

  /** Takes the descriptor; undefined, and closed, if it is no terminal. */
  static of(descriptor: number): HandedTerminal | undefined {
    try {
      return new HandedTerminal(descriptor)
    } catch {
      closeSync(descriptor)
      return undefined
    }
  }

  /** Tells its programs another size. */
  resize(size: TerminalSize): void {
    // The number of a closed descriptor may be another file by now.
    if (!this.destroyed) setTerminalSize(this.#descriptor, size)
  }
}
