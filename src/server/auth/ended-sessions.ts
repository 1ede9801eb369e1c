import type { Session } from '../../model/access/identity.ts'

/** Most ended sessions in the list; each stays there until it would have expired. */
const maxEnded = 10_000

/** A session that was ended before it expired; times are ms since 1970. */
export interface EndedSession {
  readonly id: string
  readonly begunAt: number
  readonly endsAt: number
}

/** The stored list of ended sessions. */
export interface EndedRecord {
  /** All sessions that began at this time or before have ended; ms since 1970. */
  readonly until: number
  readonly sessions: readonly EndedSession[]
}

/** Sessions that were ended before they expired. A full list drops its older half; that ends all sessions of that age. */
export class EndedSessions {
  #until: number
  readonly #sessions: Map<string, EndedSession>
  /** None of them is over before this time. */
  #firstEnd = 0

  constructor({ until, sessions }: EndedRecord = { until: 0, sessions: [] }) {
    this.#until = until
    this.#sessions = new Map(sessions.map((it) => [it.id, it]))
  }

  has({ id, begunAt }: Pick<Session, 'id' | 'begunAt'>): boolean {
    return begunAt <= this.#until || this.#sessions.has(id)
  }

  add({ id, begunAt, endsAt }: EndedSession, now: number): void {
    if (now >= this.#firstEnd) this.#removeExpired(now)
    this.#sessions.set(id, { id, begunAt, endsAt })
    this.#firstEnd = Math.min(this.#firstEnd, endsAt)
    if (this.#sessions.size <= maxEnded) return
    const oldest = [...this.#sessions.values()].toSorted((a, b) => a.begunAt - b.begunAt).slice(0, maxEnded / 2)
    for (const it of oldest) {
      this.#sessions.delete(it.id)
      this.#until = Math.max(this.#until, it.begunAt)
    }
  }

  #removeExpired(now: number): void {
    this.#firstEnd = Number.POSITIVE_INFINITY
    for (const [id, { endsAt }] of this.#sessions) {
      if (endsAt <= now) this.#sessions.delete(id)
      else this.#firstEnd = Math.min(this.#firstEnd, endsAt)
    }
  }

  record(): EndedRecord {
    return { until: this.#until, sessions: [...this.#sessions.values()] }
  }
}
