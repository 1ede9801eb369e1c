import { readFileSync, statSync } from 'node:fs'
import type { NatGuest } from '../../../../src/model/kinds/nat-guests.ts'
import { bytesOf4, guestDomain, numberOf4 } from '../../../../src/model/kinds/nat-subnet.ts'
import { reasonOf } from '../../os/system/error-reason.ts'
import { guestsName } from './addresses.ts'

const headerBytes = 12
const ttlSeconds = 60
/** RFC 1035, 3.2.2; AAAA: RFC 3596. */
const recordType = { a: 1, ptr: 12, any: 255 } as const
const internet = 1
/** An answer with authority, and that recursion is available (RFC 1035, 4.1.1); that it was desired is as in the query. */
const flags = { answer: 0x84, recursionDesired: 0x01, recursionAvailable: 0x80 } as const

/** A guest with a name and an address of its own. */
export interface KnownGuest {
  readonly name: string
  readonly address: number
}

/** The guests that have a port, a name and an address. They come from a file, which is read again when it has changed. */
export class Guests {
  readonly #file: string
  readonly #log: (line: string) => void
  #problem = ''
  #version = Number.NaN
  #ports: ReadonlyMap<number, KnownGuest> = new Map()
  #names: ReadonlyMap<string, KnownGuest> = new Map()
  #addresses: ReadonlyMap<number, KnownGuest> = new Map()

  constructor(file = guestsName, log = (line: string): void => void process.stderr.write(line)) {
    this.#file = file
    this.#log = log
  }

  /** The guest at a port. */
  at(port: number): KnownGuest | undefined {
    this.#refresh()
    return this.#ports.get(port)
  }

  isReserved(address: number): boolean {
    return this.#addresses.has(address)
  }

  /** The answer to a DNS query about a guest: its address, its name, or that it has no other record. Undefined: it is about something else. */
  answer(query: Uint8Array): Uint8Array | undefined {
    this.#refresh()
    if (this.#names.size === 0) return undefined
    const question = questionOf(query)
    if (question === undefined) return undefined
    const { name, type, end } = question
    const guest = this.#names.get(name)
    if (guest !== undefined) {
      const isWanted = type === recordType.a || type === recordType.any
      return reply(query, end, isWanted ? { type: recordType.a, data: bytesOf4(guest.address) } : undefined)
    }
    const [, reversed] = /^((?:\d{1,3}\.){4})in-addr\.arpa$/.exec(name) ?? []
    if (reversed === undefined) return undefined
    const found = this.#addresses.get(numberOf4(reversed.slice(0, -1).split('.').reverse().join('.')))
    if (found === undefined) return undefined
    const isWanted = type === recordType.ptr || type === recordType.any
    return reply(query, end, isWanted ? { type: recordType.ptr, data: labelsOf([found.name, guestDomain]) } : undefined)
  }

  /** Logs a problem once, as each frame would meet it again. */
  #report(problem: string): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#log(`the guests stay as they were: ${problem}\n`)
  }

  #refresh(): void {
    try {
      const { mtimeMs, ino } = statSync(this.#file)
      const version = mtimeMs + ino
      if (version === this.#version) return
      const list = JSON.parse(readFileSync(this.#file, 'utf8')) as NatGuest[]
      const known = list.map(({ port_number, name, address }) => ({ port_number, name, address: numberOf4(address) }))
      this.#ports = new Map(known.map((guest) => [guest.port_number, guest]))
      this.#names = new Map(
        known.flatMap((guest) => {
          const name = guest.name.toLowerCase()
          return [name, `${name}.${guestDomain}`].map((it) => [it, guest] as const)
        }),
      )
      this.#addresses = new Map(known.map((guest) => [guest.address, guest]))
      this.#version = version
      this.#problem = ''
    } catch (error) {
      // A nat of an earlier version has no such file, and no guests.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#report(reasonOf(error))
    }
  }
}

/** The only question of a query, with its name in lower case, and where it ends. */
function questionOf(query: Uint8Array): { name: string; type: number; end: number } | undefined {
  const view = new DataView(query.buffer, query.byteOffset, query.length)
  // A response, another operation, or several questions.
  if (query.length < headerBytes + 5 || (view.getUint8(2) & 0xf8) !== 0 || view.getUint16(4, false) !== 1)
    return undefined
  const labels: string[] = []
  let at = headerBytes
  for (;;) {
    const length = query[at] ?? 64
    at += 1
    if (length === 0) break
    if (length > 63 || at + length + 5 > query.length) return undefined
    labels.push(String.fromCharCode(...query.subarray(at, at + length)).toLowerCase())
    at += length
  }
  if (at + 4 > query.length || view.getUint16(at + 2, false) !== internet) return undefined
  return { name: labels.join('.'), type: view.getUint16(at, false), end: at + 4 }
}

/** The query as its answer, with a record of the name in the question or without any. */
function reply(query: Uint8Array, end: number, record?: { type: number; data: Uint8Array }): Uint8Array {
  const head = query.slice(0, end)
  head[2] = flags.answer | ((head[2] as number) & flags.recursionDesired)
  head[3] = flags.recursionAvailable
  head.fill(0, 6, headerBytes)
  if (record === undefined) return head
  head[7] = 1
  const { type, data } = record
  const fields = new Uint8Array(12)
  const view = new DataView(fields.buffer)
  // A pointer to the name in the question (RFC 1035, 4.1.4).
  view.setUint16(0, 0xc000 | headerBytes, false)
  view.setUint16(2, type, false)
  view.setUint16(4, internet, false)
  view.setUint32(6, ttlSeconds, false)
  view.setUint16(10, data.length, false)
  return Uint8Array.from([...head, ...fields, ...data])
}

const labelsOf = (labels: readonly string[]): Uint8Array =>
  Uint8Array.from([...labels.flatMap((label) => [label.length, ...bytesOfText(label)]), 0])

/** The bytes of a text of ASCII characters. */
export const bytesOfText = (text: string): Uint8Array => Uint8Array.from(text, (sign) => sign.charCodeAt(0))
