import type { JoinGrant } from '../../fleet/pool/join-tokens.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { thenSync } from '../../lib/async/then-sync.ts'
import { retryLater } from '../../lib/errors/api-error.ts'
import type { TokenRecord } from '../../model/access/access-token.ts'
import type { Identified, Identity, Session } from '../../model/access/identity.ts'
import { type EndedRecord, EndedSessions } from './ended-sessions.ts'
import {
  isExpired,
  isSecretOf,
  parseToken,
  type SignedMeaning,
  type SignedTokens,
  type TokenMeaning,
  type TokenParts,
} from './token-text.ts'
import { grantOf, identityOf, tokenOfKey } from './tokens.ts'

/** The age at which a request refreshes the list in the background, and the greatest age that a request accepts, ms. */
const freshMs = 5000
const staleMs = 10_000
/** Shortest time between two refreshes in the background, ms: one whose request was ended never arrives. */
const refreshPauseMs = 1000
/** Shortest time between two reads for tokens without a proof, ms. */
const unprovenPauseMs = 10_000
/** How long a request waits for the read of another request, and how often it checks, ms. */
const waitMs = 5000
const pollMs = 20
/** A token that is up to this much older than the list may still be absent from it, ms. */
const slackMs = 5000

/** The cause of a read: `signed`: a token with a valid signature; `old`: a token without a signature. */
export type ListReason = 'signed' | 'old'

/** The valid tokens. */
export interface TokenList {
  /** Changes when a token is created or revoked. */
  readonly revision: string
  /** The time of the list, by the clock that dates the tokens; ms since 1970. */
  readonly at: number
  /** The limit of the organization, requests per second; absent or 0: none. */
  readonly requestsPerS?: number
  /** Absent when the revision has not changed. */
  readonly tokens?: {
    /** Ids of all valid tokens. */
    readonly ids: readonly string[]
    /** The valid tokens without a signature. Their number never grows: new tokens are signed. */
    readonly old: readonly TokenRecord[]
    /** Sessions that were ended before they expired. */
    readonly ended: EndedRecord
  }
}

export interface ListedTokensOptions {
  readonly signed: SignedTokens
  /** The organization of all tokens; absent: `default`. */
  readonly organization?: string | undefined
  /** Reads the list; `known` is the revision that this process has. */
  readonly read: (known: string | undefined, reason: ListReason) => Promise<TokenList>
  /** Keeps a read running after the answer to the request. */
  readonly waitUntil: (reading: Promise<unknown>) => void
  readonly now?: () => number
}

interface StoredList {
  readonly revision: string
  readonly madeAt: number
  readonly readAt: number
  readonly requestsPerS: number
  readonly ids: ReadonlySet<string>
  readonly old: ReadonlyMap<string, TokenRecord>
  readonly ended: EndedSessions
}

/**
 * Checks tokens in a process that does not store them, by a list of the valid tokens that is at most 10 s old. A token with a valid
 * signature may refresh the list. A token without a signature reads the list once, at most every 10 s until the read succeeds;
 * afterwards it refreshes the list only with the right secret.
 */
export class ListedTokens {
  readonly #options: ListedTokensOptions
  readonly #now: () => number
  /** Identities of tokens whose meaning is remembered. */
  readonly #identities = new WeakMap<SignedMeaning, Identity>()
  #list: StoredList | undefined
  #refreshedAt = Number.NEGATIVE_INFINITY
  #triedAt = Number.NEGATIVE_INFINITY
  #isTrying = false

  constructor(options: ListedTokensOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** The identity of a token for requests; undefined for other tokens. `signed`: its meaning, where it was verified. 503 while the list cannot be read. */
  identify(text: string, signed?: SignedMeaning): Identified {
    const valid = signed === undefined ? this.#valid(text) : this.#listed(signed, signed)
    return thenSync(valid, (token) => identityOf(token, this.#options.organization))
  }

  /** What `identify` gives for a token whose meaning was verified, while the list is not too old; undefined: `identify` decides. */
  atHand(signed: SignedMeaning): Identity | undefined {
    const { organization } = this.#options
    const now = this.#now()
    const list = this.#list
    if (list === undefined || now - list.readAt > staleMs || !list.ids.has(signed.token_id)) return undefined
    if (signed.organization !== organization || isExpired(signed, now)) return undefined
    this.#refreshInTime(list, now)
    const known = this.#identities.get(signed) ?? identityOf(signed, organization)
    if (known !== undefined) this.#identities.set(signed, known)
    return known
  }

  /** The limit of the organization by the last list, requests per second; 0: none. */
  get requestsPerS(): number {
    return this.#list?.requestsPerS ?? 0
  }

  /** Reads the list when it is too old, for requests that no token lets in. 503 while it cannot be read. */
  async refresh(): Promise<void> {
    await this.#current(undefined)
  }

  /**
   * The grant of a join token. The process that stores the tokens knows which compute may use it: a token that was not made for one is
   * bound to the first one there.
   */
  async joinGrant(text: string): Promise<JoinGrant | undefined> {
    const token = await this.#valid(text)
    return token?.purpose === 'join' ? grantOf(token) : undefined
  }

  /** False when the session was ended, or its token was revoked. 503 while the list cannot be read. */
  async isSessionValid(session: Session): Promise<boolean> {
    const token = tokenOfKey(session.key)
    const created_at = new Date(session.begunAt).toISOString()
    const list = await this.#current(token === undefined ? undefined : { token_id: token, created_at })
    return !list.ended.has(session) && (token === undefined || list.ids.has(token))
  }

  /** Ends a session in this process at once, whatever the age of the list. */
  endSession(session: Session): void {
    this.#list?.ended.add(session, this.#now())
  }

  async #valid(text: string): Promise<TokenMeaning | undefined> {
    const signed = await this.#options.signed.read(text)
    if (signed !== undefined) return this.#listed(signed, signed)
    const parts = parseToken(text)
    if (parts === undefined || parts.organization !== this.#options.organization) return undefined
    const token = await this.#unsigned(parts)
    return token && this.#listed(token)
  }

  /** The token, if it is one of this organization and on the list; at once unless the list is read. `signed`: its meaning, if it has a signature. */
  #listed(token: TokenMeaning, signed?: SignedMeaning): TokenMeaning | undefined | Promise<TokenMeaning | undefined> {
    if (signed !== undefined && signed.organization !== this.#options.organization) return undefined
    if (isExpired(token, this.#now())) return undefined
    return thenSync(this.#current(signed), ({ ids }) => (ids.has(token.token_id) ? token : undefined))
  }

  /** The token without a signature from a list of any age: a later list has fewer of them. */
  async #unsigned({ id, secret }: TokenParts): Promise<TokenMeaning | undefined> {
    const record = (this.#list ?? (await this.#first())).old.get(id)
    return record !== undefined && (await isSecretOf(record.hash, secret)) ? record : undefined
  }

  /** A list that is fresh, and new enough to contain this token; at once unless it is read. */
  #current(signed: Pick<TokenMeaning, 'token_id' | 'created_at'> | undefined): StoredList | Promise<StoredList> {
    const list = this.#list
    const now = this.#now()
    const ageMs = now - (list?.readAt ?? 0)
    if (list === undefined || ageMs > staleMs) return this.#read('signed')
    const isAbsent = signed !== undefined && !list.ids.has(signed.token_id)
    if (isAbsent && Date.parse(signed.created_at) > list.madeAt - slackMs) return this.#read('signed')
    this.#refreshInTime(list, now)
    return list
  }

  /** Reads a list that is not fresh again, beside the request. */
  #refreshInTime({ readAt }: StoredList, now: number): void {
    if (now - readAt <= freshMs || now - this.#refreshedAt < refreshPauseMs) return
    this.#refreshedAt = now
    this.#options.waitUntil(
      this.#read('signed').catch(
        ignore('the present list stays in use until it is too old; then a request gets the error'),
      ),
    )
  }

  /** The first list. A request polls for the read of another request: Workers forbid awaiting the I/O of another request. */
  async #first(): Promise<StoredList> {
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
    while (this.#list === undefined && this.#isTrying && this.#now() < until)
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    if (this.#list === undefined) throw unknown()
    return this.#list
  }

  async #read(reason: ListReason): Promise<StoredList> {
    const readAt = this.#now()
    const before = this.#list
    const {
      revision,
      at: madeAt,
      tokens,
      requestsPerS = 0,
    } = await this.#options.read(before?.revision, reason).catch((error: unknown) => {
      throw unknown(error)
    })
    const list: StoredList = {
      revision,
      madeAt,
      readAt,
      requestsPerS,
      ids: tokens === undefined ? (before?.ids ?? new Set()) : new Set(tokens.ids),
      old: tokens === undefined ? (before?.old ?? new Map()) : new Map(tokens.old.map((it) => [it.token_id, it])),
      ended: tokens === undefined ? (before?.ended ?? new EndedSessions()) : new EndedSessions(tokens.ended),
    }
    // Another request may have read a newer list meanwhile.
    if (this.#list === undefined || this.#list.readAt <= readAt) this.#list = list
    return list
  }
}

const unknown = (cause?: unknown) =>
  retryLater(503, 'The service cannot check this token just now; try again', 1, cause)
