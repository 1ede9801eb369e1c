/** Commands of telnet (RFC 854), and options: binary (RFC 856), echo (RFC 857), suppress go-ahead (RFC 858). */
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

/** The negotiation that the server begins: it echoes and sends no go-ahead; both directions are binary. */
export const greeting = Uint8Array.of(
  ...[IAC, WILL, optionEcho],
  ...[IAC, WILL, optionSuppressGoAhead],
  ...[IAC, WILL, optionBinary],
  ...[IAC, DO, optionBinary],
)

const areYouThere = new TextEncoder().encode('\r\nYour Are-You-There received. I am here.\r\n')
// Sub-negotiations (RFC 855) have a few bytes; an unterminated one must not block the input.
const longestSubnegotiation = 64

type State = 'data' | 'cr' | 'iac' | 'option' | 'sub' | 'sub-iac'

/**
 * The server's side of one telnet connection: removes the commands from the input of the client, and answers them. CR NUL and CR LF
 * become CR, as a serial terminal sends it. Clients that do not speak telnet work too.
 */
export class TelnetDecoder {
  #state: State = 'data'
  #command = 0
  #subLength = 0

  /** Returns the data for the guest, and the reply to the client. Input may be split anywhere. */
  decode(input: Uint8Array): { data: Uint8Array; reply: Uint8Array } {
    const data: number[] = []
    const reply: number[] = []
    for (const byte of input) this.#readByte(byte, data, reply)
    return { data: Uint8Array.from(data), reply: Uint8Array.from(reply) }
  }

  #readByte(byte: number, data: number[], reply: number[]): void {
    const state = this.#state
    if (state === 'sub') {
      if (byte === IAC) this.#state = 'sub-iac'
      else if (++this.#subLength > longestSubnegotiation) this.#state = 'data'
      return
    }
    this.#state = 'data'
    if (state === 'iac') this.#afterIac(byte, data, reply)
    else if (state === 'option') this.#negotiate(byte, reply)
    else if (state === 'sub-iac') {
      // IAC IAC is a byte of the sub-negotiation. Any other command ends it, IAC SE by rule (RFC 855).
      if (byte === IAC) this.#state = 'sub'
    } else if (byte === IAC) this.#state = 'iac'
    else if (state === 'data' || (byte !== 0 && byte !== LF)) {
      data.push(byte)
      if (byte === CR) this.#state = 'cr'
    }
  }

  #afterIac(byte: number, data: number[], reply: number[]): void {
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

/** Encodes output of the guest for a telnet client: a byte 255 (IAC) is sent twice (RFC 854). */
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

/** A first line of this length was sent by a program, not typed. */
const longRequestLine = 1024

/**
 * Whether the first bytes of a client are an HTTP/1 request line (RFC 9112 section 3). A web page can make a browser send a request
 * to any port, whose body would be typed at the console.
 */
export function isHttpRequest(first: Uint8Array): boolean {
  const head = Buffer.from(first.buffer, first.byteOffset, Math.min(first.byteLength, longRequestLine)).toString(
    'latin1',
  )
  if (/^[A-Z]{3,10} \/\S* HTTP\/1\.[01]\r\n/.test(head)) return true
  return head.length === longRequestLine && /^[A-Z]{3,10} \/\S*( HTTP\/1\.[01]\r?)?$/.test(head)
}

/** Removes the telnet commands from the output of a console. The client answers none: it accepts the options by silence. */
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
