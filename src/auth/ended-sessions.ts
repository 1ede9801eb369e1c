import type { Session } from './sessions.ts'

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

  constructor({ until, sessions }: EndedRecord = { until: 0, sessions: [] }) {
    this.#until = until
    this.#sessions = new Map(sessions.map((it) => [it.id, it]))
  }

  has({ id, begunAt }: Pick<Session, 'id' | 'begunAt'>): boolean {
    return begunAt <= this.#until || this.#sessions.has(id)
  }

  add({ id, begunAt, endsAt }: EndedSession, now: number): void {
    for (const [other, it] of this.#sessions) if (it.endsAt <= now) this.#sessions.delete(other)
    this.#sessions.set(id, { id, begunAt, endsAt })
    if (this.#sessions.size <= maxEnded) return
    const oldest = [...this.#sessions.values()].toSorted((a, b) => a.begunAt - b.begunAt).slice(0, maxEnded / 2)
    for (const it of oldest) {
      this.#sessions.delete(it.id)
      this.#until = Math.max(this.#until, it.begunAt)
    }
  }

  record(): EndedRecord {
    return { until: this.#until, sessions: [...this.#sessions.values()] }
  }
}
