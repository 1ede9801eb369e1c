import { ignore } from '../async/ignore.ts'
import { ApiError } from '../errors/api-error.ts'
import type { TokenRecord } from '../model/access-token.ts'
import { type EndedRecord, EndedSessions } from './ended-sessions.ts'
import type { Identity } from './identity.ts'
import type { Session } from './sessions.ts'
import { isExpired, isSecretOf, parseToken, readSignedToken, type TokenMeaning, type TokenParts } from './token-text.ts'
import { identityOf, tokenOfKey } from './tokens.ts'

/** How old the list of tokens may be before it is read again beside a request, and at most, ms. */
const freshMs = 5000
const staleMs = 10_000
/** Least time between two readings for tokens that are not proven, ms. */
const unprovenPauseMs = 10_000
/** How long a request waits for a reading that another request began, and how often it looks, ms. */
const waitMs = 5000
const lookMs = 20
/** A token that was created so shortly before the list was made may not be in it, ms. */
const slackMs = 5000

/** Why the list is read: `signed` for a token whose signature is good, `old` for a text that only the list can tell. */
export type ListReason = 'signed' | 'old'

/** Which tokens hold. */
export interface TokenList {
  /** Another one when a token was made or revoked. */
  readonly revision: string
  /** When it was made, by the clock that tokens are dated by, ms. */
  readonly at: number
  /** Absent: as before, as the revision is still the same. */
  readonly tokens?: {
    /** Ids of all that hold. */
    readonly ids: readonly string[]
    /** Those of them without a signature. There are never more later: new ones are signed. */
    readonly old: readonly TokenRecord[]
    /** Sessions that were ended before their time. */
    readonly ended: EndedRecord
  }
}

export interface ListedTokensOptions {
  readonly key: () => Promise<CryptoKey>
  /** The list; `known` is the revision of the one that is here. */
  readonly read: (known: string | undefined, reason: ListReason) => Promise<TokenList>
  /** Lets the reading go on beside the request. */
  readonly beside: (reading: Promise<unknown>) => void
  readonly now?: () => number
}

interface Held {
  readonly revision: string
  readonly madeAt: number
  readonly readAt: number
  readonly ids: ReadonlySet<string>
  readonly old: ReadonlyMap<string, TokenRecord>
  readonly ended: EndedSessions
}

/**
 * Judges signed tokens in a process that does not keep them, with a list of those that hold, at most 10 s old. The list is read for
 * tokens with a good signature only. Tokens without a signature are known by the list alone: for them it is read once, and
 * afterwards for those alone whose secret is right; until that succeeds, at most once in 10 s.
 */
export class ListedTokens {
  readonly #options: ListedTokensOptions
  readonly #now: () => number
  #held: Held | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  #isTrying = false

  constructor(options: ListedTokensOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Whose token this is, if it is one for requests. 503 while it cannot be known. */
  async identify(text: string): Promise<Identity | undefined> {
    return identityOf(await this.#valid(text))
  }

  /** Whether a compute may join by it, as far as can be told here: which one it may be is known where tokens are kept. */
  async isJoinToken(text: string): Promise<boolean> {
    return (await this.#valid(text))?.purpose === 'join'
  }

  /** Whether a session goes on: neither was it ended, nor the token revoked that it was begun with. 503 as for tokens. */
  async holdsSession(session: Session): Promise<boolean> {
    const token = tokenOfKey(session.key)
    const created_at = new Date(session.begunAt).toISOString()
    const held = await this.#current(token === undefined ? undefined : { token_id: token, created_at })
    return !held.ended.has(session) && (token === undefined || held.ids.has(token))
  }

  /** A session was ended by this process: it does not go on here, however old the list is. */
  endSession(session: Session): void {
    this.#held?.ended.add(session, this.#now())
  }

  async #valid(text: string): Promise<TokenMeaning | undefined> {
    const signed = await readSignedToken([await this.#options.key()], text)
    const parts = parseToken(text)
    const token = signed ?? (parts && (await this.#unsigned(parts)))
    if (token === undefined || isExpired(token, this.#now())) return undefined
    const held = await this.#current(signed === undefined ? undefined : token)
    return held.ids.has(token.token_id) ? token : undefined
  }

  /** The token that these parts are the text of, as the list has it, however old that is: there are only fewer later. */
  async #unsigned({ id, secret }: TokenParts): Promise<TokenMeaning | undefined> {
    const record = (this.#held ?? (await this.#first())).old.get(id)
    return record !== undefined && (await isSecretOf(record.hash, secret)) ? record : undefined
  }

  /** A list that is young enough, and that has the token if it was made before this and holds. */
  async #current(signed: Pick<TokenMeaning, 'token_id' | 'created_at'> | undefined): Promise<Held> {
    const held = this.#held
    const ageMs = this.#now() - (held?.readAt ?? 0)
    if (held === undefined || ageMs > staleMs) return this.#read('signed')
    const isNew = signed !== undefined && Date.parse(signed.created_at) > held.madeAt - slackMs
    if (isNew && !held.ids.has(signed.token_id)) return this.#read('signed')
    if (ageMs > freshMs)
      this.#options.beside(
        this.#read('signed').catch(
          ignore('the list that is here counts until it is too old, and then the request is told'),
        ),
      )
    return held
  }

  /** The first list, for a text that may be anything. A request does not wait for what another one began, but looks for it. */
  async #first(): Promise<Held> {
    const now = this.#now()
    if (now - this.#triedAt >= unprovenPauseMs) {
      this.#triedAt = now
      this.#isTrying = true
      try {
        return await this.#read('old')
      } finally {
        this.#isTrying = false
      }
    }
    const until = now + waitMs
    while (this.#held === undefined && this.#isTrying && this.#now() < until)
      await new Promise((resolve) => setTimeout(resolve, lookMs))
    if (this.#held === undefined) throw unknown()
    return this.#held
  }

  async #read(reason: ListReason): Promise<Held> {
    const readAt = this.#now()
    const before = this.#held
    const list = await this.#options.read(before?.revision, reason).catch((error: unknown) => {
      throw unknown(error)
    })
    const { revision, at: madeAt, tokens } = list
    const held: Held = {
      ...{ revision, madeAt, readAt },
      ids: tokens === undefined ? (before?.ids ?? new Set()) : new Set(tokens.ids),
      old: tokens === undefined ? (before?.old ?? new Map()) : new Map(tokens.old.map((it) => [it.token_id, it])),
      ended: tokens === undefined ? (before?.ended ?? new EndedSessions()) : new EndedSessions(tokens.ended),
    }
    // One that another request read meanwhile may be younger.
    if (this.#held === undefined || this.#held.readAt <= readAt) this.#held = held
    return held
  }
}

const unknown = (cause?: unknown): ApiError =>
  new ApiError(503, 'It cannot be known just now whether this token holds; try again', {
    cause,
    headers: { 'Retry-After': '1' },
  })
