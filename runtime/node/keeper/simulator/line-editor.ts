import stringWidth from 'fast-string-truncated-width'

const longestLine = 1024
const maxHistory = 50
const encoder = new TextEncoder()
const segmenter = new Intl.Segmenter()

/** Codes of control characters. */
const key = {
  home: 1,
  left: 2,
  interrupt: 3,
  end: 5,
  right: 6,
  bell: 7,
  backspace: 8,
  tab: 9,
  lf: 10,
  kill: 11,
  clear: 12,
  cr: 13,
  next: 14,
  previous: 16,
  killLine: 21,
  killWord: 23,
  escape: 27,
  delete: 127,
} as const

export interface LineEditorOptions {
  readonly print: (text: string) => void
  /** Called with an entered line. */
  readonly entered: (line: string) => void
  readonly interrupted: () => void
  readonly complete: (start: string) => readonly string[]
  readonly prompt: () => string
}

/** Line editing for a raw terminal that speaks UTF-8: cursor keys, history, completion. Echoes the input. */
export class LineEditor {
  readonly history: string[] = []
  readonly #options: LineEditorOptions
  /** Characters, each with what combines with it: the cursor and backspace go by them. */
  #line: readonly string[] = []
  /** Position in the line, in characters. */
  #cursor = 0
  readonly #decoder = new TextDecoder()
  /** Index into the history, from its end; 0: the line that is being typed. */
  #recalled = 0
  #typed = ''
  #escape = ''
  #lastWasCr = false

  constructor(options: LineEditorOptions) {
    this.#options = options
  }

  type(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const end = this.#escape === '' ? endOfText(bytes, at) : at
      // Plain text is inserted in one piece: byte by byte, pasted text would make one output message a byte.
      if (end > at) {
        this.#lastWasCr = false
        // A character may continue in the next piece of input.
        this.#insert(this.#decoder.decode(bytes.subarray(at, end), { stream: true }))
        at = end
      } else {
        this.#input(bytes[at] ?? 0)
        at += 1
      }
    }
  }

  /** Shows the prompt and the text typed ahead. */
  showPrompt(): void {
    this.#options.print(`\r${this.#options.prompt()}${this.#line.join('')}${back(this.#line.slice(this.#cursor))}`)
  }

  #input(byte: number): void {
    const afterCr = this.#lastWasCr
    this.#lastWasCr = byte === key.cr
    if (afterCr && (byte === key.lf || byte === 0)) return
    if (this.#escape !== '') return this.#takeEscape(String.fromCharCode(byte))
    switch (byte) {
      case key.cr:
      case key.lf:
        return this.#enter()
      case key.interrupt:
        this.#line = []
        this.#cursor = 0
        return this.#options.interrupted()
      case key.escape:
        this.#escape = '\x1b'
        return
      case key.backspace:
      case key.delete:
        return this.#remove(this.#cursor - 1, this.#cursor)
      case key.home:
        return this.#move(0)
      case key.end:
        return this.#move(this.#line.length)
      case key.left:
        return this.#move(this.#cursor - 1)
      case key.right:
        return this.#move(this.#cursor + 1)
      case key.killLine:
        return this.#remove(0, this.#cursor)
      case key.kill:
        return this.#remove(this.#cursor, this.#line.length)
      case key.killWord:
        return this.#remove(charactersOf(this.#before().replace(/\S+\s*$/, '')).length, this.#cursor)
      case key.previous:
        return this.#recall(1)
      case key.next:
        return this.#recall(-1)
      case key.clear:
        this.#options.print('\x1b[2J\x1b[H')
        return this.showPrompt()
      case key.tab:
        return this.#complete()
    }
  }

  #takeEscape(char: string): void {
    this.#escape += char
    if (this.#escape === '\x1b[' || this.#escape === '\x1bO') return
    if (this.#escape.startsWith('\x1b[') && /^[\d;]{0,8}$/.test(this.#escape.slice(2))) return
    const sequence = this.#escape
    this.#escape = ''
    switch (sequence.at(-1)) {
      case 'A':
        return this.#recall(1)
      case 'B':
        return this.#recall(-1)
      case 'C':
        return this.#move(this.#cursor + 1)
      case 'D':
        return this.#move(this.#cursor - 1)
      case 'H':
        return this.#move(0)
      case 'F':
        return this.#move(this.#line.length)
      case '~':
        if (sequence === '\x1b[3~') this.#remove(this.#cursor, this.#cursor + 1)
        else if (sequence === '\x1b[1~') this.#move(0)
        else if (sequence === '\x1b[4~') this.#move(this.#line.length)
    }
  }

  #enter(): void {
    const line = this.#line.join('')
    this.#line = []
    this.#cursor = 0
    this.#recalled = 0
    this.#echo('\r\n')
    if (line.trim() !== '' && line !== this.history.at(-1)) {
      this.history.push(line)
      if (this.history.length > maxHistory) this.history.shift()
    }
    this.#options.entered(line)
  }

  #insert(text: string): void {
    if (text === '') return
    const [before, rest] = [this.#before(), this.#line.slice(this.#cursor)]
    const room = longestLine - this.#line.length
    // What combines with the character before the cursor becomes a part of it.
    const start = charactersOf(before + text).slice(0, this.#cursor + room)
    const shown = start.join('').slice(before.length)
    this.#line = [...start, ...rest]
    this.#cursor = start.length
    this.#echo(shown + rest.join('') + back(rest))
    if (shown.length < text.length) this.#echo('\x07')
  }

  #before(): string {
    return this.#line.slice(0, this.#cursor).join('')
  }

  #remove(from: number, to: number): void {
    const [start, end] = [Math.max(0, from), Math.min(this.#line.length, to)]
    if (start >= end) return
    this.#move(start)
    const [removed, rest] = [widthOf(this.#line.slice(start, end)), this.#line.slice(end)]
    this.#line = [...this.#line.slice(0, start), ...rest]
    this.#echo(rest.join('') + ' '.repeat(removed) + '\b'.repeat(widthOf(rest) + removed))
  }

  #move(to: number): void {
    const cursor = Math.min(Math.max(0, to), this.#line.length)
    const passed = this.#line.slice(Math.min(cursor, this.#cursor), Math.max(cursor, this.#cursor))
    this.#echo(cursor < this.#cursor ? back(passed) : passed.join(''))
    this.#cursor = cursor
  }

  #replace(line: string): void {
    this.#remove(0, this.#line.length)
    this.#insert(line)
  }

  #recall(step: number): void {
    const wanted = this.#recalled + step
    if (wanted < 0 || wanted > this.history.length) return
    if (this.#recalled === 0) this.#typed = this.#line.join('')
    this.#recalled = wanted
    this.#replace(wanted === 0 ? this.#typed : (this.history.at(-wanted) ?? ''))
  }

  #complete(): void {
    const start = this.#before()
    const words = start.includes(' ') ? [] : this.#options.complete(start)
    const [only] = words
    if (only !== undefined && words.length === 1) this.#insert(`${only.slice(start.length)} `)
    else if (words.length > 1) {
      this.#options.print(`\r\n${words.join('  ')}\r\n`)
      this.showPrompt()
    } else this.#echo('\x07')
  }

  #echo(text: string): void {
    if (text !== '') this.#options.print(text)
  }
}

/** Splits a text into what a person sees as characters (UAX #29); plain ASCII is split without the segmenter, which is slow. */
function charactersOf(text: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII.
  return /^[\x00-\x7f]*$/.test(text) ? text.split('') : Array.from(segmenter.segment(text), ({ segment }) => segment)
}

/** Columns of the terminal. */
const widthOf = (characters: readonly string[]): number => stringWidth(characters.join('')).width
/** Moves the cursor of the terminal back over characters. */
const back = (characters: readonly string[]): string => '\b'.repeat(widthOf(characters))

/** The end of the plain text from an offset on, at most a line further. */
function endOfText(bytes: Uint8Array, from: number): number {
  const limit = Math.min(bytes.length, from + longestLine)
  let at = from
  while (at < limit && (bytes[at] ?? 0) >= 32 && bytes[at] !== key.delete) at++
  return at
}

export const utf8BytesOf = (text: string): Uint8Array => encoder.encode(text)
