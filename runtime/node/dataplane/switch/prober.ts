import { decodeProbe, encodeProbe } from './core/probe-frame.ts'

/** Backoff of probes to a peer that has not answered yet, ms; then the prober waits for a probe of the peer. */
const firstWaits = [250, 1000, 2000, 4000, 8000, 15_000]
/** Interval of probes to a peer that answers, ms: a NAT keeps the flow (WireGuard has the same PersistentKeepalive behind NAT). */
const keepAliveMs = 25_000
/** Unanswered probes in a row before a peer counts as lost, and before it is asked as seldom as one that answers. */
const toleratedSilence = 2
const maxSilence = 20
/** How long an answer is fresh, and the timeout of a reader for a newer one, ms. */
const freshMs = 2000
const answerMs = 200
/** Timeout for the answer to a probe, ms. */
const underWayMs = 2000

/** The result of the probes of a link. */
export type ProbeFinding =
  /** The peer answers: both directions work. */
  | 'answers'
  /** The peer probes, but does not answer: only its frames arrive. */
  | 'hears_nothing'
  /** The peer answered earlier, but no longer. */
  | 'lost'
  /** The peer never sent a probe; it may not support them. */
  | 'unknown'

/** Probes the switch at the other end of one UDP link, over the link itself. */
export class Prober {
  readonly #send: (frame: Uint8Array) => void
  #timer: NodeJS.Timeout | undefined
  #sequence = 0
  #answered = 0
  #sentAt = Number.NEGATIVE_INFINITY
  #unanswered = 0
  #answeredAt = Number.NEGATIVE_INFINITY
  #askedAt = Number.NEGATIVE_INFINITY
  #isOff = true
  readonly #waiting = new Set<() => void>()

  /** `send` sends a frame to the peer. */
  constructor(send: (frame: Uint8Array) => void) {
    this.#send = send
  }

  /** Starts probing, with the first interval. */
  start(): void {
    this.#unanswered = 0
    this.#ask()
  }

  /** Stops probing until a probe of the peer or `start`. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#isOff = true
    for (const done of [...this.#waiting]) done()
  }

  get finding(): ProbeFinding {
    const now = performance.now()
    const hasAnswered = this.#answeredAt > Number.NEGATIVE_INFINITY
    if (hasAnswered && this.#unanswered < toleratedSilence) return 'answers'
    if (now - this.#askedAt < keepAliveMs * toleratedSilence) return 'hears_nothing'
    return hasAnswered ? 'lost' : 'unknown'
  }

  /** Handles a received probe. */
  receive(frame: Uint8Array): void {
    const probe = decodeProbe(frame)
    if (probe === undefined) return
    if (probe.isQuestion) {
      this.#askedAt = performance.now()
      this.#send(encodeProbe({ isQuestion: false, hearsYou: true, sequence: probe.sequence }))
      // A peer that probes can answer.
      if (this.#isOff) this.start()
      return
    }
    // Late answers count as well.
    if (probe.sequence <= this.#answered || probe.sequence > this.#sequence) return
    this.#answered = probe.sequence
    this.#unanswered = 0
    this.#answeredAt = performance.now()
    for (const done of [...this.#waiting]) done()
    this.#next(keepAliveMs)
  }

  /** Sends a probe unless the last answer is fresh, and waits shortly for the answer. */
  async refresh(): Promise<void> {
    const now = performance.now()
    if (this.#isOff || this.#unanswered >= maxSilence || now - this.#answeredAt < freshMs) return
    const answered = new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, answerMs)
      this.#waiting.add(done)
    })
    // The answer to a pending probe is sufficient.
    if (now - this.#sentAt > underWayMs) this.#ask()
    await answered
  }

  #ask(): void {
    this.#isOff = false
    this.#sentAt = performance.now()
    this.#sequence += 1
    this.#send(encodeProbe({ isQuestion: true, hearsYou: this.finding === 'answers', sequence: this.#sequence }))
    this.#unanswered += 1
    const hasAnswered = this.#answeredAt > Number.NEGATIVE_INFINITY
    // A peer that has answered is asked for as long as the link is there: behind NATs neither end hears the other before both have sent.
    const isRetried = this.#unanswered > 1 && this.#unanswered < maxSilence
    const wait = hasAnswered ? (isRetried ? 1000 : keepAliveMs) : firstWaits[this.#unanswered - 1]
    if (wait === undefined) this.#isOff = true
    else this.#next(wait)
  }

  #next(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#ask(), ms)
    this.#timer.unref()
  }
}
