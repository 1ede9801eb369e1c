import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { Memory } from '../../dataplane/fast/memory.ts'
import { Sockets } from '../../dataplane/fast/sockets.ts'
import type { Libc } from '../../os/system/libc.ts'

const dnsPort = 53
/** Most resolvers, as in the C library (resolv.conf(5), MAXNS). */
const maxResolvers = 3
/** Timeout of a resolver, after which the next one is asked, ms. */
const patienceMs = 2000
/** Most pending questions; above it, the oldest is dropped. */
const maxWaiting = 256
const headerBytes = 12
const truncated = 0x02
/** Longest answer that fits into a packet, bytes. */
const longestAnswer = 1452
const longestRead = 65_535

/** The resolvers of the host. Without any, the C library asks 127.0.0.1. */
export function resolversOf(text: string): string[] {
  const found = [...text.matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm)].map(([, address = '']) => address)
  const usable = found.filter((address) => isIP(address.split('%')[0] ?? '') !== 0).slice(0, maxResolvers)
  return usable.length > 0 ? usable : ['127.0.0.1']
}

interface Question {
  readonly query: Uint8Array
  readonly answer: (answer: Uint8Array) => void
  /** Resolvers that remain to be asked. */
  readonly left: string[]
  fd: number
  due: number
}

/**
 * Forwards DNS questions of guests to the resolvers of the host. Each question has a socket of its own, connected to the resolver, so that
 * answers of others are not accepted.
 */
export class NameForwarder {
  readonly #libc: Libc
  readonly #sockets: Sockets
  readonly #memory: Memory
  readonly #file: string
  readonly #waiting = new Map<number, Question>()

  constructor(libc: Libc, file = '/etc/resolv.conf') {
    this.#libc = libc
    this.#file = file
    this.#sockets = new Sockets(libc, false)
    this.#memory = new Memory(libc, longestRead)
  }

  /** The sockets of the pending questions. */
  descriptors(): Iterable<number> {
    return this.#waiting.keys()
  }

  /** The next timeout, for `expire`; ms of `performance.now`. */
  get nextDue(): number {
    for (const { due } of this.#waiting.values()) return due
    return Number.POSITIVE_INFINITY
  }

  ask(query: Uint8Array, answer: (answer: Uint8Array) => void): void {
    // The QR bit marks a response, not a question (RFC 1035, 4.1.1).
    if (query.length < headerBytes || ((query[2] as number) & 0x80) !== 0) return
    for (const fd of this.#waiting.keys()) {
      if (this.#waiting.size < maxWaiting) break
      this.#end(fd)
    }
    this.#askNext({ query: query.slice(), answer, left: resolversOf(this.#text()), fd: -1, due: 0 })
  }

  /** Reads the answer to a question, or the error of its socket. */
  read(fd: number): void {
    const question = this.#waiting.get(fd)
    if (question === undefined) return
    const length = this.#libc.read(fd, this.#memory.address, longestRead)
    const { bytes } = this.#memory
    const isAnswer = bytes[0] === question.query[0] && bytes[1] === question.query[1] && ((bytes[2] ?? 0) & 0x80) !== 0
    if (length >= headerBytes && !isAnswer) return
    this.#end(fd)
    if (length < headerBytes) return this.#askNext(question)
    question.answer(length <= longestAnswer ? bytes.slice(0, length) : shortened(bytes))
  }

  /** Asks the next resolver for questions whose resolver has timed out. */
  expire(now = performance.now()): void {
    for (const [fd, question] of this.#waiting) {
      if (question.due > now) return
      this.#end(fd)
      this.#askNext(question)
    }
  }

  #askNext(question: Question): void {
    for (;;) {
      const address = question.left.shift()
      if (address === undefined) return
      const local = { address: address.includes(':') ? '::' : '0.0.0.0', port: 0 }
      try {
        const { fd } = this.#sockets.udp({ local, remote: { address, port: dnsPort } })
        this.#memory.bytes.set(question.query)
        if (this.#libc.send(fd, this.#memory.address, question.query.length, 0) < 0) {
          this.#libc.close(fd)
          continue
        }
        this.#waiting.set(fd, Object.assign(question, { fd, due: performance.now() + patienceMs }))
        return
      } catch {
        // No route to the resolver, or an address family that this host lacks.
      }
    }
  }

  #end(fd: number): void {
    this.#libc.close(fd)
    this.#waiting.delete(fd)
  }

  #text(): string {
    try {
      return readFileSync(this.#file, 'latin1')
    } catch {
      return ''
    }
  }
}

/** The question alone, marked as truncated, so that the guest repeats it by TCP (RFC 1035, 4.2.1). */
function shortened(answer: Uint8Array): Uint8Array {
  let end = headerBytes
  while (end < longestAnswer && (answer[end] as number) !== 0) end += (answer[end] as number) + 1
  const short = answer.slice(0, end + 5)
  short[2] = (short[2] as number) | truncated
  short.fill(0, 6, headerBytes)
  return short
}
