import { decodeProbe, encodeProbe } from './core/probe-frame.ts'

/** Waits between questions to a peer that has not answered yet, ms; then it is left alone until it asks. */
const firstWaits = [250, 1000, 2000, 4000, 8000, 15_000]
/** Between questions to a peer that answers, ms. */
const keepAliveMs = 30_000
/** Questions without an answer that a peer may miss in a row before it counts as gone, and before it is left alone. */
const toleratedSilence = 2
const maxSilence = 20
/** For how long an answer is fresh, and how long a reader waits for a fresher one, ms. */
const freshMs = 2000
const answerMs = 200
/** For how long a question may be under way, ms. */
const underWayMs = 2000

/** What the probes say of a link. */
export type ProbeFinding =
  /** The peer answers: both ways work. */
  | 'answers'
  /** The peer asks, but our questions have no answers: only its frames arrive. */
  | 'hears_nothing'
  /** The peer answered once, and does no more. */
  | 'lost'
  /** The peer never said anything: it may not know of probes. */
  | 'unknown'

/** Asks the switch at the other end of one UDP link whether the link works, over the link itself. */
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
  readonly #told = new Set<() => void>()

  /** `send` sends a frame to the peer. */
  constructor(send: (frame: Uint8Array) => void) {
    this.#send = send
  }

  /** Begins to ask, from the beginning. */
  start(): void {
    this.#unanswered = 0
    this.#ask()
  }

  /** Asks no more, until the peer does or `start`. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#isOff = true
    for (const told of [...this.#told]) told()
  }

  get finding(): ProbeFinding {
    const now = performance.now()
    const hasAnswered = this.#answeredAt > Number.NEGATIVE_INFINITY
    if (hasAnswered && this.#unanswered < toleratedSilence) return 'answers'
    if (now - this.#askedAt < keepAliveMs * toleratedSilence) return 'hears_nothing'
    return hasAnswered ? 'lost' : 'unknown'
  }

  /** Takes a probe that came in. */
  take(frame: Uint8Array): void {
    const probe = decodeProbe(frame)
    if (probe === undefined) return
    if (probe.isQuestion) {
      this.#askedAt = performance.now()
      this.#send(encodeProbe({ isQuestion: false, hearsYou: true, sequence: probe.sequence }))
      // Who asks can answer.
      if (this.#isOff) this.start()
      return
    }
    // An answer that took long is one all the same.
    if (probe.sequence <= this.#answered || probe.sequence > this.#sequence) return
    this.#answered = probe.sequence
    this.#unanswered = 0
    this.#answeredAt = performance.now()
    for (const told of [...this.#told]) told()
    this.#next(keepAliveMs)
  }

  /** Asks once more when what is known is not fresh, and waits a moment for the answer. */
  async refresh(): Promise<void> {
    const now = performance.now()
    if (this.#isOff || now - this.#answeredAt < freshMs) return
    const answered = new Promise<void>((resolve) => {
      const told = () => {
        clearTimeout(timer)
        this.#told.delete(told)
        resolve()
      }
      const timer = setTimeout(told, answerMs)
      this.#told.add(told)
    })
    // The answer to a question that is under way will do.
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
    if (hasAnswered && this.#unanswered < maxSilence) this.#next(this.#unanswered > 1 ? 1000 : keepAliveMs)
    else {
      const wait = hasAnswered ? undefined : firstWaits[this.#unanswered - 1]
      if (wait === undefined) this.#isOff = true
      else this.#next(wait)
    }
  }

  #next(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#ask(), ms)
    this.#timer.unref()
  }
}
