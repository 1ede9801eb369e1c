import { retryLater } from '../errors/api-error.ts'

/** Most bytes of a compute's answer that is read into memory. */
export const maxAnswerBytes = 4 << 20
/** Size up to which an answer needs no reservation, bytes. */
const freeBytes = 64 << 10
/** How long an answer waits for a reservation, and how often it tries, ms. */
const waitMs = 5000
const pollMs = 20
/** A reservation expires when nothing is read for this long, ms: a Worker stops a handler without notice when the client leaves. */
const leaseMs = 60_000

export interface AnswerBudgetOptions {
  /** Most bytes of all answers that are read at one time. */
  readonly bytes: number
  readonly now?: () => number
}

/** A part of the budget. */
export interface Reservation {
  /** Reports that bytes of the answer came. */
  touch(): void
  /** Frees the reservation. */
  release(): void
}

/**
 * Limits the memory of all answers that are read into memory. An answer of more than 64 KiB reserves its whole length before it is
 * read on, so that an answer with a reservation can always be read to its end.
 */
export class AnswerBudget {
  readonly #bytes: number
  readonly #now: () => number
  readonly #reserved = new Set<{ readonly bytes: number; touchedAt: number }>()

  constructor({ bytes, now = Date.now }: AnswerBudgetOptions) {
    this.#bytes = bytes
    this.#now = now
  }

  /** Whether an answer of this many bytes needs a reservation before more is read. */
  isDue(bytes: number): boolean {
    return bytes > freeBytes
  }

  /** Waits up to 5 s for a reservation; then 503. */
  async reserve(bytes: number): Promise<Reservation> {
    const until = this.#now() + waitMs
    while (this.#reservedBytes() + bytes > this.#bytes) {
      if (this.#now() >= until) throw full()
      // By polling: a Worker cannot wait for a promise of another request.
      await new Promise((resolve) => setTimeout(resolve, pollMs))
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

  #reservedBytes(): number {
    let reservedBytes = 0
    for (const reserved of this.#reserved) {
      if (this.#now() - reserved.touchedAt > leaseMs) this.#reserved.delete(reserved)
      else reservedBytes += reserved.bytes
    }
    return reservedBytes
  }
}

/** The budget of this process. */
export const answerBudget = new AnswerBudget({ bytes: 8 * maxAnswerBytes })

const full = () => retryLater(503, 'Too many large responses from computes are being read at once; try again', 5)
