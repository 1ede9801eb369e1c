import { ApiError } from '../errors/api-error.ts'

/** Most bytes of one answer of a compute that is read whole. */
export const maxAnswerBytes = 4 << 20
/** What an answer may have without a reservation, bytes. */
const freeBytes = 64 << 10
/** How long an answer waits for others to be read, and how often it looks, ms. */
const waitMs = 5000
const lookMs = 20
/** A reservation of which nothing was read for so long is void, ms: a Worker ends what a client has left without a word. */
const leaseMs = 60_000

export interface AnswerBudgetOptions {
  /** Most bytes of all answers that are read at a time. */
  readonly bytes: number
  readonly now?: () => number
}

/** A part of the budget. */
export interface Reservation {
  /** Something of the answer came. */
  touch(): void
  /** The answer was read, or is not read further. */
  release(): void
}

/**
 * Bounds the memory of answers that are read whole, all together. An answer of more than 64 KiB reserves its length before it is read
 * further, so that those that are being read can always be read to their end.
 */
export class AnswerBudget {
  readonly #bytes: number
  readonly #now: () => number
  readonly #reserved = new Set<{ readonly bytes: number; touchedAt: number }>()

  constructor({ bytes, now = Date.now }: AnswerBudgetOptions) {
    this.#bytes = bytes
    this.#now = now
  }

  /** Whether an answer that has so many bytes by now must reserve what is still to come. */
  isDue(bytes: number): boolean {
    return bytes > freeBytes
  }

  /** Waits for room, for 5 s; then 503. */
  async reserve(bytes: number): Promise<Reservation> {
    const until = this.#now() + waitMs
    while (this.#taken() + bytes > this.#bytes) {
      if (this.#now() >= until) throw full()
      // Looked for, not told: a Worker forbids to wait for what another request does.
      await new Promise((resolve) => setTimeout(resolve, lookMs))
    }
    const reserved = { bytes, touchedAt: this.#now() }
    this.#reserved.add(reserved)
    return {
      touch: () => {
        reserved.touchedAt = this.#now()
      },
      release: () => void this.#reserved.delete(reserved),
    }
  }

  #taken(): number {
    let taken = 0
    for (const reserved of this.#reserved) {
      if (this.#now() - reserved.touchedAt > leaseMs) this.#reserved.delete(reserved)
      else taken += reserved.bytes
    }
    return taken
  }
}

/** That of this process. */
export const answerBudget = new AnswerBudget({ bytes: 8 * maxAnswerBytes })

const full = () =>
  new ApiError(503, 'Too many large answers of computes are being read at once; try again', {
    headers: { 'Retry-After': '5' },
  })
