import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { setNewest } from '../../lib/async/newest.ts'
import { randomHex, sameBytes, sha256, toHex } from '../../lib/crypto/secret.ts'
import { TokenLimits, type TokenRecord } from '../../model/access/access-token.ts'
import { signText, verifySigned } from './signed-text.ts'

/** `pb_{id}_{secret}`: found by its id, and proven by a secret of 256 random bits. `pb_{id}_{organization}_{secret}` unless it is of `default`. */
const form = /^pb_([0-9a-f]{16})_(?:([a-z][a-z0-9-]{0,39})_)?([0-9a-f]{64})$/
/** `pb_{id}_{signed text}`: proven by its signature; the signed text has the role and the purpose. */
const signedForm = /^pb_([0-9a-f]{16})_([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/
const signedFor = 'token'

export interface TokenParts {
  readonly id: string
  /** Absent: `default`. */
  readonly organization?: string
  readonly secret: string
}

/** The rights of a token; the text of a signed token contains them. */
export type TokenMeaning = Pick<
  TokenRecord,
  'token_id' | 'name' | 'role' | 'purpose' | 'compute_id' | 'projects' | 'limits' | 'created_at' | 'expires_at'
>

/** What a signed token says. */
export type SignedMeaning = TokenMeaning & { readonly organization?: string }

/** The members of a signed token, by short names: every request carries them. */
const Payload = Type.Object({
  id: Type.String(),
  n: Type.String(),
  r: Type.Union([Type.Literal('read'), Type.Literal('operate'), Type.Literal('admin')]),
  /**
   * `some`: a user with `pr`, whom a version without `pr` must not take for one with all projects. With `o` each is another word, so
   * that a version without `o` does not take the token for one of `default`.
   */
  p: Type.Union((['user', 'join', 'some', 'o-user', 'o-join', 'o-some'] as const).map((it) => Type.Literal(it))),
  /** The organization; absent: `default`. */
  o: Type.Optional(Type.String()),
  pr: Type.Optional(Type.Array(Type.String())),
  l: Type.Optional(TokenLimits),
  c: Type.Optional(Type.String()),
  /** Creation and expiry, ms since 1970. */
  at: Type.Integer(),
  exp: Type.Optional(Type.Integer()),
})

/** The parts of a text that has the form of a token without a signature. */
export function parseToken(text: string): TokenParts | undefined {
  const [, id, organization, secret] = form.exec(text) ?? []
  if (id === undefined || secret === undefined) return undefined
  return { id, secret, ...(organization !== undefined && { organization }) }
}

/** A new token without a signature: the store finds it by its id, and has `hash` instead of the secret. */
export async function newToken(organization?: string): Promise<{ id: string; text: string; hash: string }> {
  const [id, secret] = [newTokenId(), randomHex(32)]
  const owner = organization === undefined ? '' : `${organization}_`
  return { id, text: `pb_${id}_${owner}${secret}`, hash: await hashOf(secret) }
}

export const newTokenId = (): string => randomHex(8)

/** A new token that every process with the key can verify without the store. `organization`: absent for `default`. */
export async function newSignedToken(
  key: CryptoKey,
  meaning: TokenMeaning,
  o?: string,
): Promise<{ text: string; hash: string }> {
  const {
    token_id: id,
    name: n,
    role: r,
    purpose,
    projects: pr,
    limits: l,
    compute_id: c,
    created_at,
    expires_at,
  } = meaning
  const p = `${o === undefined ? '' : 'o-'}${pr === undefined ? purpose : 'some'}`
  const exp = expires_at === null ? {} : { exp: Date.parse(expires_at) }
  const payload = {
    id,
    n,
    r,
    p,
    ...(o !== undefined && { o }),
    ...(c !== undefined && { c }),
    ...(pr !== undefined && { pr }),
    ...(l !== undefined && { l }),
    at: Date.parse(created_at),
    ...exp,
  }
  const signed = await signText(key, signedFor, payload)
  return { text: `pb_${id}_${signed}`, hash: await hashOf(signed) }
}

/** The rights in a token that one of the keys signed; undefined for every other text. Checks neither expiry nor revocation. */
export async function readSignedToken(keys: readonly CryptoKey[], text: string): Promise<SignedMeaning | undefined> {
  const [, id, signed] = signedForm.exec(text) ?? []
  if (signed === undefined) return undefined
  const payload = await verifySigned(keys, signedFor, signed)
  if (!Check(Payload, payload) || payload.id !== id || payload.p.startsWith('o-') !== (payload.o !== undefined))
    return undefined
  const purpose = payload.p.replace('o-', '')
  if ((purpose === 'some') !== (payload.pr !== undefined)) return undefined
  return {
    token_id: id,
    name: payload.n,
    role: payload.r,
    purpose: purpose === 'join' ? 'join' : 'user',
    ...(payload.o !== undefined && { organization: payload.o }),
    ...(payload.pr !== undefined && { projects: payload.pr }),
    ...(payload.l !== undefined && { limits: payload.l }),
    ...(payload.c !== undefined && { compute_id: payload.c }),
    created_at: new Date(payload.at).toISOString(),
    expires_at: payload.exp === undefined ? null : new Date(payload.exp).toISOString(),
  }
}

/** Most texts that are remembered; the least recently read goes. A text has at most 4 KiB. */
const maxRemembered = 2000

/**
 * Reads signed tokens with one key, and remembers what the right ones say: a signature stays right, and its check is a large part of a
 * small request. Whoever reads checks expiry and revocation each time.
 */
export class SignedTokens {
  readonly #key: () => Promise<CryptoKey>
  readonly #known = new Map<string, SignedMeaning>()

  constructor(key: () => Promise<CryptoKey>) {
    this.#key = key
  }

  /** See `readSignedToken`. */
  async read(text: string): Promise<SignedMeaning | undefined> {
    const known = this.remembered(text)
    if (known !== undefined) return known
    const meaning = await readSignedToken([await this.#key()], text)
    if (meaning !== undefined) setNewest(this.#known, text, meaning, maxRemembered)
    return meaning
  }

  /** As `remembered`, but the text does not count as read most recently. */
  peek(text: string): SignedMeaning | undefined {
    return this.#known.get(text)
  }

  /** What `read` gave for this text, at once; undefined for a text that was not read, or is forgotten. */
  remembered(text: string): SignedMeaning | undefined {
    const meaning = this.#known.get(text)
    if (meaning !== undefined) setNewest(this.#known, text, meaning, maxRemembered)
    return meaning
  }
}

export const isExpired = ({ expires_at }: Pick<TokenMeaning, 'expires_at'>, now: number): boolean =>
  expires_at !== null && Date.parse(expires_at) <= now

/** A random secret needs neither a salt nor a slow hash. */
const hashOf = async (secret: string): Promise<string> => toHex(await sha256(secret))

export async function isSecretOf(hash: string, secret: string): Promise<boolean> {
  const encoder = new TextEncoder()
  return sameBytes(encoder.encode(await hashOf(secret)), encoder.encode(hash))
}
