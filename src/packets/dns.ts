import { escaped, ip4Text, ip6Text, printable } from './addresses.ts'
import { type DissectedPart, type Dissection, type Dissector, hex, maxInfo, rawText, u16 } from './dissection.ts'

const opcodes = [
  'Standard query',
  'Inverse query',
  'Server status request',
  'Unknown operation (3)',
  'Zone change notification',
  'Dynamic update',
]
const replies: Readonly<Record<number, string>> = {
  1: 'Format error',
  2: 'Server failure',
  3: 'No such name',
  4: 'Not implemented',
  5: 'Refused',
  6: 'Name exists',
  7: 'RRset exists',
  8: 'RRset does not exist',
  9: 'Not authoritative',
  10: 'Name out of zone',
}
const typeNames: Readonly<Record<number, string>> = {
  1: 'A',
  2: 'NS',
  5: 'CNAME',
  6: 'SOA',
  10: 'NULL',
  12: 'PTR',
  13: 'HINFO',
  15: 'MX',
  16: 'TXT',
  28: 'AAAA',
  33: 'SRV',
  29: 'LOC',
  35: 'NAPTR',
  39: 'DNAME',
  41: 'OPT',
  43: 'DS',
  44: 'SSHFP',
  46: 'RRSIG',
  47: 'NSEC',
  48: 'DNSKEY',
  50: 'NSEC3',
  52: 'TLSA',
  64: 'SVCB',
  65: 'HTTPS',
  250: 'TSIG',
  251: 'IXFR',
  252: 'AXFR',
  255: 'ANY',
  256: 'URI',
  257: 'CAA',
}
const typeText = (type: number): string => typeNames[type] ?? `Unknown (${type})`
const sections = ['Answers', 'Authority records', 'Additional records'] as const
/** Labels and pointers of a name: a name has at most 255 bytes (RFC 1035, 2.3.4). */
const maxLabels = 128
/** Labels and pointers of all names of a message. Real ones have hundreds; names that all point to long ones have millions. */
const maxSteps = 10_000

/** Domain Name System (RFC 1035) in a datagram; `protocol` is DNS, or MDNS and LLMNR, which have the same form. */
export const dns =
  (protocol: string): Dissector =>
  (frame, at, end) =>
    message(frame, protocol, at, at, end)

/** DNS over TCP: a length before each message (RFC 1035, 4.2.2). Of several in a segment the first is read. */
export function dnsOverTcp(frame: Dissection, at: number, end: number): void {
  frame.layer('Length', at, 2, end)?.num('Length', at, 2)
  // A segment in the middle of a message has none of the header that would show what it is.
  if (at + 14 > end || u16(frame.bytes, at) < 12) return frame.data(at, end)
  message(frame, 'DNS', at + 2, at + 2, end)
}

function message(frame: Dissection, protocol: string, at: number, base: number, end: number): void {
  const { bytes } = frame
  frame.is(protocol)
  const part = frame
    .layer('Domain Name System', at, end - at, end)
    ?.hex('Transaction ID', at, 2)
    .hex('Flags', at + 2, 2)
    .num('Questions', at + 4, 2)
    .num('Answers', at + 6, 2)
    .num('Authority records', at + 8, 2)
    .num('Additional records', at + 10, 2)
  if (!frame.holds(protocol, at, 12, end)) return
  const flags = u16(bytes, at + 2)
  const isResponse = (flags & 0x8000) !== 0
  const reply = flags & 15
  const opcode = (flags >> 11) & 15
  const known = opcodes[opcode] ?? `Unknown operation (${opcode})`
  const state = isResponse ? ` response` : ''
  const error = isResponse && reply !== 0 ? ` ${replies[reply] ?? `Unknown error (${reply})`}` : ''
  frame.info = `${known}${state} ${hex(u16(bytes, at))}${error}`
  part?.set(isResponse ? 'response' : 'query')
  const reader = new Records(frame, base, Math.min(end, bytes.length), protocol)
  let offset = at + 12
  for (let left = u16(bytes, at + 4); left > 0 && offset > 0 && reader.hasRoom; left--)
    offset = reader.question(offset, part)
  for (const [index, name] of sections.entries())
    for (let left = u16(bytes, at + 6 + index * 2); left > 0 && offset > 0 && reader.hasRoom; left--)
      offset = reader.record(offset, part, name)
  if (offset < 0) frame.holds(protocol, Math.min(end, bytes.length), end > bytes.length ? 1 : bytes.length, end)
}

/** Reads the records of one message. An offset of -1 stands for one that cannot be read. */
class Records {
  readonly #frame: Dissection
  readonly #base: number
  readonly #end: number
  readonly #isMulticast: boolean
  #steps = 0

  constructor(frame: Dissection, base: number, end: number, protocol: string) {
    this.#frame = frame
    this.#base = base
    this.#end = end
    this.#isMulticast = protocol === 'MDNS'
  }

  /** Without a tree, a summary that is long enough ends the reading. */
  get hasRoom(): boolean {
    return this.#frame.layers !== undefined || this.#frame.info.length < maxInfo
  }

  question(at: number, part: DissectedPart | undefined): number {
    const { bytes } = this.#frame
    const [name, next] = this.#name(at)
    if (next < 0 || next + 4 > this.#end) return -1
    const type = typeText(u16(bytes, next))
    this.#say(
      ` ${type} ${name}${this.#isMulticast ? `, "${(bytes[next + 2] as number & 0x80) ? 'QU' : 'QM'}" question` : ''}`,
    )
    part?.add('Question', at, next + 4 - at, `${name}: type ${type}, class ${classText(u16(bytes, next + 2))}`)
    return next + 4
  }

  record(at: number, part: DissectedPart | undefined, section: string): number {
    const { bytes } = this.#frame
    const [name, next] = this.#name(at)
    if (next < 0 || next + 10 > this.#end) return -1
    const type = u16(bytes, next)
    const data = next + 10
    const size = u16(bytes, next + 8)
    if (data + size > this.#end) return -1
    const value = this.#value(type, data, size)
    const isFlush = this.#isMulticast && type !== 41 && ((bytes[next + 2] as number) & 0x80) !== 0
    this.#say(` ${typeText(type)}${isFlush ? ', cache flush' : ''}${value.short}`)
    part
      ?.sub(
        section.replace(/s$/, ''),
        at,
        data + size - at,
        `${name}: type ${typeText(type)}${value.long === '' ? '' : `, ${value.long}`}`,
      )
      ?.num('Class', next + 2, 2, classText)
      .num('Time to live', next + 4, 4, 's')
      .add('Data', data, size, () => value.long || rawText(bytes, data, size))
    return data + size
  }

  #say(text: string): void {
    if (this.#frame.info.length < maxInfo) this.#frame.info += text
  }

  /** The data of a record: as the summary shows it (with a blank before it), and as the tree does. */
  #value(type: number, at: number, size: number): { short: string; long: string } {
    const { bytes } = this.#frame
    const both = (text: string) => ({ short: ` ${text}`, long: text })
    switch (type) {
      case 1:
        return size === 4 ? both(ip4Text(bytes, at)) : both('[malformed]')
      case 28:
        return size === 16 ? both(ip6Text(bytes, at)) : both('[malformed]')
      case 2:
      case 5:
      case 6:
      case 12:
      case 39:
        return both(this.#name(at)[0])
      case 15:
        return size > 2 ? both(`${u16(bytes, at)} ${this.#name(at + 2)[0]}`) : both('[malformed]')
      case 33:
        return size > 6
          ? both(`${u16(bytes, at)} ${u16(bytes, at + 2)} ${u16(bytes, at + 4)} ${this.#name(at + 6)[0]}`)
          : both('[malformed]')
      case 16: {
        const texts: string[] = []
        for (let offset = at; offset < at + size; offset += 1 + (bytes[offset] as number))
          texts.push(printable(bytes, offset + 1, Math.min(offset + 1 + (bytes[offset] as number), at + size)))
        return { short: '', long: texts.map((text) => JSON.stringify(text)).join(' ') }
      }
      default:
        return { short: '', long: '' }
    }
  }

  /** A name, and where it ends; -1 when it cannot be read. Pointers go back to a name before them (RFC 1035, 4.1.4). */
  #name(at: number): readonly [name: string, next: number] {
    const { bytes } = this.#frame
    let text = ''
    let offset = at
    let next = -1
    for (let labels = 0; labels <= maxLabels && offset < this.#end; labels++) {
      if (++this.#steps > maxSteps) break
      const size = bytes[offset] as number
      if (size === 0) return [text === '' ? '<Root>' : escaped(text), next < 0 ? offset + 1 : next]
      if (size >= 0xc0) {
        if (offset + 2 > this.#end) break
        if (next < 0) next = offset + 2
        offset = this.#base + (u16(bytes, offset) & 0x3fff)
      } else if (size > 63 || offset + 1 + size > this.#end) break
      else {
        if (text !== '') text += '.'
        for (let index = offset + 1; index <= offset + size; index++)
          text += String.fromCharCode(bytes[index] as number)
        offset += 1 + size
      }
    }
    return ['[malformed name]', next]
  }
}

const classText = (value: number): string => ({ 1: 'IN', 3: 'CH', 4: 'HS', 255: 'ANY' })[value & 0x7fff] ?? hex(value)
