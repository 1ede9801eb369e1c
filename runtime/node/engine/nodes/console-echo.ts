/** Characters by which an echo is found: an editor of lines that scrolls shows at least so many of the end of a line. */
const minEnd = 16
const maxEnd = 40
/** Characters of a typed line, by which output may be a part of its echo. */
const minPart = 4
/** Most output that waits for the end of an echo, characters. */
const maxHeld = 64 * 1024

/** Shells break a long echo where their screen ends, by blanks (readline) or a line end (busybox). */
const isBreak = (character: string | undefined): boolean =>
  character === ' ' || character === '\n' || character === '\b' || character === '\t'

/**
 * The output of a console without what is typed: passes what follows the first echo of a line, without further echoes. A terminal that
 * is busy may show a line twice: when it comes (tty), and when the shell reads it (readline). Some editors of lines show the end of a
 * long line alone (readline with TERM=dumb, IOS). So an echo is found by its end, without regard to blanks.
 */
export class EchoFilter {
  /** What is typed, without blanks. */
  readonly #line: string
  /** The end that is nowhere else in the line, so that it cannot be found before the echo has ended. */
  readonly #end: string
  /** Output that is not judged yet. */
  #held = ''
  #isEchoed = false
  /** What has passed of a line that has no end yet. */
  #begun = ''

  constructor(typed: string) {
    this.#line = typed.replace(/\s/g, '')
    let length = minEnd
    while (length < maxEnd && this.#line.indexOf(this.#line.slice(-length)) !== this.#line.length - length) {
      if (length >= this.#line.length) break
      length += 1
    }
    this.#end = this.#line.slice(-length)
  }

  /** What waits for the end of an echo: all output, where there was no echo. When nothing follows, it is output. */
  get held(): string {
    return this.#held
  }

  /** Takes output in order, without escape sequences and CR; returns what of it is known to be no echo. */
  push(text: string): string {
    this.#held = (this.#held + text).slice(-maxHeld)
    let passed = ''
    const pass = (output: string) => {
      passed += output
      const line = this.#begun + output
      this.#begun = line.slice(Math.max(line.lastIndexOf('\n') + 1, line.length - maxHeld))
    }
    for (let echo = this.#find(); echo !== undefined; echo = this.#find()) {
      if (this.#isEchoed) pass(this.#held.slice(0, echo.start))
      // The prompt before the echo may have passed: what follows begins a line.
      if (this.#begun !== '') pass('\n')
      this.#isEchoed = true
      this.#held = this.#held.slice(echo.end)
    }
    if (!this.#isEchoed) return ''
    const waiting = this.#waitsAt()
    pass(this.#held.slice(0, waiting))
    this.#held = this.#held.slice(waiting)
    return passed
  }

  /** The lines of the first whole echo that is held. */
  #find(): { start: number; end: number } | undefined {
    const held = this.#held
    // An empty line has the line end as its echo, which later ones do not show to be one.
    if (this.#end === '' && this.#isEchoed) return undefined
    const first = this.#end[0]
    for (let at = first === undefined ? 0 : held.indexOf(first); at !== -1; at = held.indexOf(first ?? '', at + 1)) {
      const after = this.#matched(at, this.#end)
      if (after.count === this.#end.length) {
        const end = held.indexOf('\n', after.index)
        return end === -1 ? undefined : { start: this.#lineStart(this.#beginning(at)), end: end + 1 }
      }
    }
    return undefined
  }

  /** How many characters of a text stand at an offset, broken or not, and where they end. */
  #matched(at: number, text: string): { count: number; index: number } {
    let [index, count] = [at, 0]
    for (;;) {
      while (count > 0 && count < text.length && isBreak(this.#held[index])) index += 1
      if (count === text.length || this.#held[index] !== text[count]) return { count, index }
      index += 1
      count += 1
    }
  }

  /** Where the echo begins whose end is at an offset. */
  #beginning(at: number): number {
    let [begin, index] = [at, at - 1]
    for (let count = this.#line.length - this.#end.length - 1; count >= 0; count--, index--) {
      while (isBreak(this.#held[index])) index -= 1
      if (this.#held[index] !== this.#line[count]) break
      begin = index
    }
    return begin
  }

  /** Where that begins which may become an echo: its line has no end yet, or goes on in the next one. */
  #waitsAt(): number {
    const held = this.#held
    const last = this.#lineStart(held.length)
    const isLong = this.#line.length > maxEnd
    const first = this.#line[0]
    if (first === undefined) return held.length
    for (let at = held.indexOf(first); at !== -1; at = held.indexOf(first, at + 1)) {
      const { count, index } = this.#matched(at, this.#line)
      const isCut = index === held.length && (at >= last || count >= minPart)
      const isWhole = count === this.#line.length && /^[ \t\b]*$/.test(held.slice(index))
      const isScrolled = isLong && at >= last && count >= minEnd
      if (isCut || isWhole || isScrolled) return this.#lineStart(at)
    }
    // Editors that scroll show parts of a long line, each over the one before.
    const shown = `${last === 0 ? this.#begun : ''}${held.slice(last)}`.replace(/[\s\b]/g, '')
    const isPart = isLong && shown.length >= minPart && this.#line.includes(shown.slice(-minPart))
    return isPart ? last : held.length
  }

  #lineStart(at: number): number {
    return at === 0 ? 0 : this.#held.lastIndexOf('\n', at - 1) + 1
  }
}
