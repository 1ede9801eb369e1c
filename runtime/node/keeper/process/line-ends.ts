const CR = 13
const LF = 10

/**
 * Adds the missing carriage return to line feeds. The terminals are raw; some programs end lines with LF, others with CR LF, of
 * which the terminal's own translation (ONLCR) would make CR CR LF.
 */
export class LineEnds {
  #last = 0

  complete(bytes: Uint8Array): Uint8Array {
    let missing = 0
    let last = this.#last
    for (const byte of bytes) {
      if (byte === LF && last !== CR) missing++
      last = byte
    }
    const before = this.#last
    this.#last = last
    if (missing === 0) return bytes
    const completed = new Uint8Array(bytes.length + missing)
    let at = 0
    last = before
    for (const byte of bytes) {
      if (byte === LF && last !== CR) completed[at++] = CR
      completed[at++] = byte
      last = byte
    }
    return completed
  }
}
