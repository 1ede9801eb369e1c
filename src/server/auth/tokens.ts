import type { JoinGrant, JoinTokens } from '../../fleet/pool/join-tokens.ts'
import { setNewest } from '../../lib/async/newest.ts'
import { badRequest, conflict, notFound } from '../../lib/errors/api-error.ts'
import type { AccessToken, AccessTokenCreate, TokenRecord } from '../../model/access/access-token.ts'
import type { Identity } from '../../model/access/identity.ts'
import { TokenKeys } from './token-keys.ts'
import type { TokenStore } from './token-store.ts'
import {
  isExpired,
  isSecretOf,
  newSignedToken,
  newToken,
  newTokenId,
  parseToken,
  SignedTokens,
  type TokenMeaning,
} from './token-text.ts'

/** Longest time that a token still works after another process revoked it, ms. */
const longestCacheMs = 10_000
const maxCached = 2000
/** Room for a token of each of some thousand computes, and for those of their users. */
export const maxTokens = 20_000
const maxScopeBytes = 1024

export interface TokensOptions {
  readonly store: TokenStore
  /** How long a record stays in the cache, ms, at most 10 s; 0 for a store that answers at once. */
  readonly cacheMs?: number
  readonly now?: () => number
  /** The organization of all of its tokens; absent: `default`. */
  readonly organization?: string | undefined
  /** Signs new tokens. Tokens without a signature stay valid. */
  readonly key?: () => Promise<CryptoKey>
  /** Whether the service accepts SSH connections, if its settings say so: then tokens may have public keys. */
  readonly hasSsh?: boolean
}

interface Cached {
  readonly record: TokenRecord | undefined
  readonly until: number
}

/** The tokens of a service. A configured credential creates the first token. */
export class Tokens {
  readonly #store: TokenStore
  readonly #cacheMs: number
  readonly #now: () => number
  readonly #key: (() => Promise<CryptoKey>) | undefined
  readonly #signed: SignedTokens | undefined
  readonly #organization: string | undefined
  readonly #cache = new Map<string, Cached>()
  /** The public keys of the tokens; undefined where there is no SSH. */
  readonly keys: TokenKeys | undefined
  /** Counts revocations: a read that began before a revocation is not cached. */
  #revoked = 0

  constructor({ store, cacheMs = 0, now = Date.now, key, organization, hasSsh = false }: TokensOptions) {
    this.#store = store
    this.#organization = organization
    this.#key = key
    this.#signed = key && new SignedTokens(key)
    this.#cacheMs = Math.min(cacheMs, longestCacheMs)
    this.#now = now
    this.keys = hasSsh
      ? new TokenKeys({ store, now, identityOf: (record) => identityOf(record, organization) })
      : undefined
  }

  /** The identity of a token for requests; undefined for other tokens. */
  async identify(text: string): Promise<Identity | undefined> {
    return identityOf(await this.#valid(text), this.#organization)
  }

  /** The join tokens. The first compute that uses one becomes its `compute_id`. */
  readonly joinTokens: JoinTokens = {
    check: async (text) => {
      const record = await this.#valid(text)
      return record?.purpose === 'join' ? grantOf(record) : undefined
    },
    bind: async (key, computeId) => {
      const record = await this.#joinTokenOf(key)
      if (record === undefined || record.compute_id !== undefined) return record?.compute_id
      return (await this.#store.replace({ ...record, compute_id: computeId })) ? computeId : undefined
    },
    isOwned: async (computeId) => {
      const its = await this.#store.ofCompute(computeId)
      return its.some((token) => this.#isJoinToken(token))
    },
    grantOf: async (key) => {
      const record = await this.#joinTokenOf(key)
      return record && grantOf(record)
    },
  }

  /** Whether a token for requests with this id exists. */
  async holds(tokenId: string): Promise<boolean> {
    const record = await this.#read(tokenId)
    return record !== undefined && record.purpose === 'user' && !isExpired(record, this.#now())
  }

  /** The oldest first. */
  async list(): Promise<AccessToken[]> {
    const records = await this.#store.list()
    return records
      .map(toView)
      .toSorted((a, b) => compare(a.created_at, b.created_at) || compare(a.token_id, b.token_id))
  }

  /** Only this answer has the text of the token. 409 when there are too many tokens. */
  async create(fields: AccessTokenCreate): Promise<AccessToken & { token: string }> {
    const { text, record } = await this.#make({ ...meaning(fields), ...this.#times(fields.expires_in_s ?? undefined) })
    await this.#store.put(record)
    // Counted after it is stored: of two simultaneous calls each sees the token of the other.
    if ((await this.#store.count()) > maxTokens) await this.#makeRoom(record.token_id)
    return { ...toView(record), token: text }
  }

  /** Revokes the token: in this process when the promise resolves, in other processes when their cache expires. */
  async revoke(tokenId: string): Promise<void> {
    if ((await this.#store.get(tokenId)) === undefined) throw notFound(`No such token: ${tokenId.slice(0, 40)}`)
    try {
      await this.#store.remove(tokenId)
    } finally {
      this.#revoked += 1
      this.#cache.delete(tokenId)
    }
  }

  async #joinTokenOf(key: string): Promise<TokenRecord | undefined> {
    const id = tokenOfKey(key)
    const record = id === undefined ? undefined : await this.#store.get(id)
    return record !== undefined && this.#isJoinToken(record) ? record : undefined
  }

  #isJoinToken(record: TokenRecord): boolean {
    return record.purpose === 'join' && !isExpired(record, this.#now())
  }

  async #make(fields: Omit<TokenMeaning, 'token_id'>): Promise<{ text: string; record: TokenRecord }> {
    const recordOf = (token_id: string, text: string, hash: string): TokenRecord => ({
      token_id,
      ...fields,
      hash,
      last_characters: text.slice(-4),
    })
    if (this.#key === undefined) {
      const { id, text, hash } = await newToken(this.#organization)
      return { text, record: recordOf(id, text, hash) }
    }
    const token_id = newTokenId()
    const { text, hash } = await newSignedToken(await this.#key(), { token_id, ...fields }, this.#organization)
    return { text, record: { ...recordOf(token_id, text, hash), signed: true } }
  }

  async #valid(text: string): Promise<TokenRecord | undefined> {
    const signed = this.#signed && (await this.#signed.read(text))
    const parts = parseToken(text)
    const id = signed?.token_id ?? parts?.id
    if (id === undefined || (signed ?? parts)?.organization !== this.#organization) return undefined
    const record = await this.#read(id)
    if (record === undefined || isExpired(record, this.#now())) return undefined
    if (signed !== undefined) return record
    return parts !== undefined && (await isSecretOf(record.hash, parts.secret)) ? record : undefined
  }

  // Requests share results, never a pending read: Workers forbid awaiting the I/O of another request.
  async #read(id: string): Promise<TokenRecord | undefined> {
    if (this.#cacheMs <= 0) return this.#store.get(id)
    const now = this.#now()
    const cached = this.#cache.get(id)
    if (cached !== undefined && cached.until > now) return cached.record
    const before = this.#revoked
    const record = await this.#store.get(id)
    if (before === this.#revoked) setNewest(this.#cache, id, { record, until: now + this.#cacheMs }, maxCached)
    return record
  }

  async #makeRoom(newest: string): Promise<void> {
    const all = await this.#store.list()
    const expired = all.filter((it) => isExpired(it, this.#now()))
    for (const { token_id } of expired) await this.#store.remove(token_id)
    if (all.length - expired.length <= maxTokens) return
    await this.#store.remove(newest)
    throw conflict(`The limit of ${maxTokens} tokens is reached: revoke some first`)
  }

  #times(seconds: number | undefined): { created_at: string; expires_at: string | null } {
    const now = this.#now()
    return {
      created_at: new Date(now).toISOString(),
      expires_at: seconds === undefined ? null : new Date(now + seconds * 1000).toISOString(),
    }
  }
}

/** The grant of a join token. */
export const grantOf = ({ token_id, compute_id }: TokenMeaning): JoinGrant => ({
  key: keyOfToken(token_id),
  ...(compute_id !== undefined && { compute_id }),
})

/** The identity of a valid token; undefined when the token is not for requests. */
export function identityOf(token: TokenMeaning | undefined, organization?: string): Identity | undefined {
  if (token?.purpose !== 'user') return undefined
  const { name, role, token_id, expires_at, projects, limits } = token
  const expiry = expires_at === null ? {} : { expiresAt: Date.parse(expires_at) }
  return {
    name,
    role,
    key: keyOfToken(token_id),
    ...expiry,
    ...(projects !== undefined && { projects }),
    ...(limits !== undefined && { limits }),
    ...(organization !== undefined && { organization }),
  }
}

/** See `Identity.key`. */
export const keyOfToken = (tokenId: string): string => `token:${tokenId}`

export const isKeyOfToken = (key: string): boolean => key.startsWith('token:')

/** The token id in a key; undefined for the key of another credential. */
export const tokenOfKey = (key: string): string | undefined => /^token:(.*)$/s.exec(key)?.[1]

/** 400 for fields that exclude each other. */
function meaning(fields: AccessTokenCreate): Omit<TokenMeaning, 'token_id' | 'created_at' | 'expires_at'> {
  const { name, role, compute_id } = fields
  const projects = fields.projects ?? undefined
  if (projects !== undefined && fields.purpose === 'join')
    throw badRequest('projects: a join token cannot be limited to projects')
  const limits = fields.limits ?? undefined
  if (limits !== undefined && (fields.purpose === 'join' || role === 'admin'))
    throw badRequest('limits: expected for tokens with the role read or operate alone; an administrator has none')
  // Tokens, sessions and tickets carry it in their texts.
  if (new TextEncoder().encode(JSON.stringify(projects ?? [])).length > maxScopeBytes)
    throw badRequest(
      `projects: longer than ${maxScopeBytes} bytes in total; give the projects names with a common prefix`,
    )
  if (fields.purpose === 'join') {
    return { name, role: 'read', purpose: 'join', ...(typeof compute_id === 'string' && { compute_id }) }
  }
  if (typeof compute_id === 'string') throw badRequest('compute_id: only a join token can be limited to a compute')
  if (typeof role !== 'string') throw badRequest('role: missing, expected "read", "operate" or "admin"')
  const scope = projects !== undefined && { projects }
  return { name, role, purpose: 'user', ...scope, ...(limits !== undefined && { limits }) }
}

function toView({ hash: _, signed: __, ...rest }: TokenRecord): AccessToken {
  return rest
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
