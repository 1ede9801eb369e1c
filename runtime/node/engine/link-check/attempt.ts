import { randomBytes } from 'node:crypto'
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { firstProbedPort, type LinkCheckResult, type UdpAddress } from '../../../../src/model/link-check.ts'
import { reasonOf } from '../../os/system/error-reason.ts'
import { type CheckPacket, decodeCheck, encodeCheck, idBytes } from './packet.ts'

/** When each address is asked, ms after the start: the other end may start later, and datagrams may be lost. */
const askedAtMs = [0, 60, 180, 400, 800, 1300, 1800, 2400, 3000, 3600, 4200]
/** The longest attempt, ms. */
const maxMs = 5000
/** How long one goes on after the first address that works, ms: until the other end knows of it, and for a better address. */
const settleMs = 40
const betterMs = 150
/** Ports of named addresses from which the other end may come, beside those that were named: a NAT may have chosen them. */
const maxLearned = 4
/** Most questions and most answers that one address and port gets. */
const maxQuestions = 16
const maxAnswers = 32

export interface AttemptOptions {
  /** A port that no socket has. */
  readonly port: number
  readonly end: CheckPacket['end']
  readonly key: Buffer
  /** Numeric addresses, the best first. No other address is sent to. */
  readonly candidates: readonly UdpAddress[]
  readonly signal: AbortSignal
}

interface Target extends UdpAddress {
  readonly id: Buffer
  questions: number
  answers: number
  /** How the other end has seen this one, in its answer. */
  seenAs: UdpAddress | undefined
  wasHeard: boolean
  /** The other end has an answer from here, too. */
  isMutual: boolean
  failure: string | undefined
}

const targetAt = ({ address, port }: UdpAddress): Target => ({
  address,
  port,
  id: randomBytes(idBytes),
  questions: 0,
  answers: 0,
  seenAs: undefined,
  wasHeard: false,
  isMutual: false,
  failure: undefined,
})

/**
 * One attempt of two computes to reach each other, from the UDP port that the link will have: a NAT then knows the port when the link
 * begins. Both ends ask all candidates of the other, and answer questions that have the key. The method is that of ICE (RFC 8445):
 * an address works when it has answered, and the address from which a question came is asked, too.
 */
export class Attempt {
  readonly #options: AttemptOptions
  readonly #targets: Target[]
  readonly #named: ReadonlySet<string>
  readonly #sockets = new Map<'udp4' | 'udp6', Socket>()
  readonly #timers: NodeJS.Timeout[] = []
  #isSettling = false
  #finish = () => {}

  private constructor(options: AttemptOptions) {
    this.#options = options
    this.#targets = options.candidates.map(targetAt)
    this.#named = new Set(options.candidates.map(({ address }) => address))
  }

  /** Resolves when an address works, or after `maxMs`. The port is free again then. */
  static async run(options: AttemptOptions): Promise<LinkCheckResult> {
    const attempt = new Attempt(options)
    const { signal } = options
    const finished = new Promise<void>((resolve) => {
      attempt.#finish = resolve
    })
    signal.addEventListener('abort', attempt.#finish)
    try {
      await attempt.#open()
      if (!signal.aborted && attempt.#sockets.size > 0) {
        for (const ms of askedAtMs) attempt.#after(ms, () => attempt.#askAll())
        attempt.#after(maxMs, attempt.#finish)
        await finished
      }
    } finally {
      signal.removeEventListener('abort', attempt.#finish)
      await attempt.#close()
    }
    return attempt.#result()
  }

  #after(ms: number, run: () => void): void {
    this.#timers.push(setTimeout(run, ms))
  }

  /** Opens a socket for each family that the candidates have. */
  async #open(): Promise<void> {
    for (const type of ['udp4', 'udp6'] as const) {
      const ofType = this.#targets.filter((target) => typeOf(target) === type)
      if (ofType.length === 0) continue
      try {
        this.#sockets.set(type, await this.#bound(type))
      } catch (error) {
        for (const target of ofType) target.failure = reasonOf(error)
      }
    }
  }

  async #bound(type: 'udp4' | 'udp6'): Promise<Socket> {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' })
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.bind({ port: this.#options.port, exclusive: true }, resolve)
      })
    } catch (error) {
      socket.close()
      throw error
    }
    socket.removeAllListeners('error')
    // Errors of single datagrams are those of their targets.
    socket.on('error', () => {})
    socket.on('message', (bytes, from) => this.#receive(bytes, from))
    return socket
  }

  async #close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    const closing = [...this.#sockets.values()].map(
      (socket) => new Promise<void>((resolve) => socket.close(() => resolve())),
    )
    await Promise.all(closing)
  }

  #askAll(): void {
    for (const target of this.#targets) if (!works(target)) this.#ask(target)
  }

  #ask(target: Target): void {
    if (target.questions >= maxQuestions) return
    target.questions += 1
    this.#send(target, { isQuestion: true, id: target.id, seen: null })
  }

  #send(target: Target, packet: Pick<CheckPacket, 'isQuestion' | 'id' | 'seen'>): void {
    const { end, key } = this.#options
    const bytes = encodeCheck({ ...packet, end, hasAnswer: target.seenAs !== undefined }, key)
    this.#sockets.get(typeOf(target))?.send(bytes, target.port, target.address, (error) => {
      target.failure = error === null ? undefined : reasonOf(error)
    })
  }

  #receive(bytes: Buffer, from: RemoteInfo): void {
    if (!this.#named.has(from.address)) return
    const packet = decodeCheck(bytes, this.#options.key)
    if (packet === undefined || packet.end === this.#options.end) return
    const target = this.#targets.find(({ address, port }) => address === from.address && port === from.port)
    if (packet.isQuestion) this.#onQuestion(packet, target ?? this.#learn(from))
    else if (target !== undefined) this.#answered(packet, target)
  }

  /** A port of a named address that was not named. */
  #learn({ address, port }: RemoteInfo): Target | undefined {
    if (port < firstProbedPort || this.#targets.length >= this.#options.candidates.length + maxLearned) return undefined
    const target = targetAt({ address, port })
    this.#targets.push(target)
    return target
  }

  #onQuestion({ id, hasAnswer }: CheckPacket, target: Target | undefined): void {
    if (target === undefined || target.answers >= maxAnswers) return
    target.answers += 1
    target.wasHeard = true
    target.isMutual ||= hasAnswer
    const { address, port } = target
    this.#send(target, { isQuestion: false, id, seen: { address, port } })
    if (target.seenAs === undefined) this.#ask(target)
    if (works(target)) this.#settle()
  }

  #answered({ id, hasAnswer, seen }: CheckPacket, target: Target): void {
    if (!id.equals(target.id) || seen === null) return
    const isFirst = target.seenAs === undefined
    target.seenAs = seen
    target.isMutual ||= hasAnswer
    // Tells the other end that its answer has come.
    if (isFirst) this.#ask(target)
    if (works(target)) this.#settle()
  }

  #settle(): void {
    if (this.#isSettling) return
    this.#isSettling = true
    // Once more: else the other end waits to the end of its time when that datagram was lost.
    this.#after(settleMs / 2, () => {
      for (const target of this.#targets) if (works(target)) this.#ask(target)
    })
    const isBest = this.#targets[0] !== undefined && works(this.#targets[0])
    this.#after(isBest ? settleMs : betterMs, this.#finish)
  }

  #result(): LinkCheckResult {
    return {
      paths: this.#targets.flatMap(({ address, port, seenAs }) =>
        seenAs === undefined ? [] : [{ address, port, seen_as: seenAs }],
      ),
      tried: this.#targets.map((target) => ({
        host: target.address,
        port: target.port,
        outcome: outcomeOf(target),
        reason: target.failure ?? null,
      })),
    }
  }
}

function outcomeOf({ seenAs, wasHeard, failure }: Target): LinkCheckResult['tried'][number]['outcome'] {
  if (seenAs !== undefined) return 'answered'
  if (wasHeard) return 'heard'
  return failure === undefined ? 'silent' : 'failed'
}

/** Whether both ends have answers of each other. */
const works = ({ seenAs, isMutual }: Target): boolean => seenAs !== undefined && isMutual

const typeOf = ({ address }: UdpAddress): 'udp4' | 'udp6' => (isIPv6(address) ? 'udp6' : 'udp4')
