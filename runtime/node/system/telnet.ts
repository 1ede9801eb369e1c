/** Bytes of the telnet protocol (RFC 854, 855, 1073). */
const IAC = 255
const DONT = 254
const DO = 253
const WONT = 252
const WILL = 251
const SB = 250
const AYT = 246
const CR = 13
const LF = 10
const optionBinary = 0
const optionEcho = 1
const optionSuppressGoAhead = 3

/** The first negotiation of the server: it echoes; both directions are 8-bit, without go-ahead (RFC 856 to 858). */
export const greeting = Uint8Array.of(
  ...[IAC, WILL, optionEcho],
  ...[IAC, WILL, optionSuppressGoAhead],
  ...[IAC, WILL, optionBinary],
  ...[IAC, DO, optionBinary],
)

const areYouThere = new TextEncoder().encode('\r\nYour Are-You-There received. I am here.\r\n')
// A sub-negotiation has a few bytes; an unterminated one must not block the input.
const longestSubnegotiation = 64

type State = 'data' | 'cr' | 'iac' | 'option' | 'sub' | 'sub-iac'

/**
 * The server's side of one telnet connection: cuts the commands out of what the client sends, wherever the reads split it.
 * CR NUL and CR LF become CR, which is what a guest's terminal expects. A client that knows no telnet is not disturbed.
 */
export class TelnetDecoder {
  #state: State = 'data'
  #command = 0
  #subLength = 0

  /** Data for the guest, and what must be answered to the client. */
  decode(input: Uint8Array): { data: Uint8Array; reply: Uint8Array } {
    const data: number[] = []
    const reply: number[] = []
    for (const byte of input) this.#take(byte, data, reply)
    return { data: Uint8Array.from(data), reply: Uint8Array.from(reply) }
  }

  #take(byte: number, data: number[], reply: number[]): void {
    switch (this.#state) {
      case 'cr':
        this.#state = 'data'
        if (byte === 0 || byte === LF) return
        this.#data(byte, data)
        return
      case 'data':
        this.#data(byte, data)
        return
      case 'iac':
        this.#afterIac(byte, data, reply)
        return
      case 'option':
        this.#state = 'data'
        this.#negotiate(byte, reply)
        return
      case 'sub':
        if (byte === IAC) this.#state = 'sub-iac'
        else if (++this.#subLength > longestSubnegotiation) this.#state = 'data'
        return
      case 'sub-iac':
        // IAC IAC inside is a data byte; anything but SE is a client in error, whose next bytes are taken as data again.
        this.#state = byte === IAC ? 'sub' : 'data'
        return
    }
  }

  #data(byte: number, data: number[]): void {
    if (byte === IAC) {
      this.#state = 'iac'
      return
    }
    data.push(byte)
    if (byte === CR) this.#state = 'cr'
  }

  #afterIac(byte: number, data: number[], reply: number[]): void {
    this.#state = 'data'
    if (byte === IAC) data.push(IAC)
    else if (byte >= WILL && byte <= DONT) {
      this.#command = byte
      this.#state = 'option'
    } else if (byte === SB) {
      this.#subLength = 0
      this.#state = 'sub'
    } else if (byte === AYT) reply.push(...areYouThere)
    // NOP, GA, BRK and the rest have no meaning on a console.
  }

  /** Answers only options outside the greeting, so that negotiation cannot loop (RFC 854). */
  #negotiate(option: number, reply: number[]): void {
    const isOurs = option === optionBinary || option === optionEcho || option === optionSuppressGoAhead
    if (this.#command === DO && !isOurs) reply.push(IAC, WONT, option)
    if (this.#command === WILL && option !== optionBinary && option !== optionSuppressGoAhead)
      reply.push(IAC, DONT, option)
  }
}

/** Output of the guest as a telnet client must get it: a byte FF is sent twice. */
export function encodeTelnet(output: Uint8Array): Uint8Array {
  let doubled = 0
  for (const byte of output) if (byte === IAC) doubled++
  if (doubled === 0) return output
  const encoded = new Uint8Array(output.length + doubled)
  let at = 0
  for (const byte of output) {
    encoded[at++] = byte
    if (byte === IAC) encoded[at++] = IAC
  }
  return encoded
}

/** A request line that goes on for so long is one of a page, and nothing that somebody types. */
const longRequestLine = 1024

/**
 * Whether the first bytes of a client are a request of HTTP. Any web page can have a browser send one to any port, with a body that
 * would be typed at the console.
 */
export function isHttpRequest(first: Uint8Array): boolean {
  const head = Buffer.from(first.buffer, first.byteOffset, Math.min(first.byteLength, longRequestLine)).toString(
    'latin1',
  )
  if (/^[A-Z]{3,10} \/\S* HTTP\/1\.[01]\r\n/.test(head)) return true
  return head.length === longRequestLine && /^[A-Z]{3,10} \/\S*( HTTP\/1\.[01]\r?)?$/.test(head)
}

/** For a terminal that shows a telnet console: the output without the server's commands, which it agrees to by silence. */
export class TelnetStripper {
  #pending: 'none' | 'iac' | 'option' = 'none'

  strip(input: Uint8Array): Uint8Array {
    const data: number[] = []
    for (const byte of input) {
      if (this.#pending === 'option') this.#pending = 'none'
      else if (this.#pending === 'iac') {
        this.#pending = byte >= WILL && byte <= DONT ? 'option' : 'none'
        if (byte === IAC) data.push(IAC)
      } else if (byte === IAC) this.#pending = 'iac'
      else data.push(byte)
    }
    return Uint8Array.from(data)
  }
}
