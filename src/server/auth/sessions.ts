import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { randomHex, toHex } from '../../lib/crypto/secret.ts'
import { Role, TokenLimits } from '../../model/access/access-token.ts'
import type { Identity, Session } from '../../model/access/identity.ts'
import { signText, verifySigned } from './signed-text.ts'

/** Lifetime of a session, ms; shorter when the token behind it expires earlier. */
export const sessionLifeMs = 12 * 3_600_000
const purpose = 'session'

/** The members of a session's text, by short names: every request of a browser carries them. */
const Payload = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 64 }),
  n: Type.String(),
  r: Role,
  k: Type.String(),
  /** Proof of the configured credentials behind the session. */
  c: Type.Optional(Type.String()),
  /** The organization of the session; absent: `default`. */
  o: Type.Optional(Type.String()),
  /** The only projects of the session. */
  pr: Type.Optional(Type.Array(Type.String())),
  l: Type.Optional(TokenLimits),
  /** Begin and end, ms since 1970. */
  at: Type.Integer(),
  exp: Type.Integer(),
})

/** Knows the sessions that were ended before they expired, and the valid tokens. */
export interface SessionKeeper {
  /** False when the session was ended, or its token is no longer valid. */
  holds(session: Session): Promise<boolean>
  /** Ends the session: in this process when the promise resolves, in other processes at most 10 s later. */
  end(session: Session): Promise<void>
}

export interface SessionsOptions {
  readonly key: () => Promise<CryptoKey>
  readonly keeper: SessionKeeper
  readonly now?: () => number
}

/**
 * Sessions are signed texts: any process with the key can verify them, and only ended sessions are stored. The session of a token
 * ends with that token; the session of configured credentials ends when those change.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #now: () => number
  #proof: readonly [secret: string, proof: string] | undefined
  #name: string | undefined

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** A new session. `secret`: the configured credentials of the log-in, if it used them. */
  async begin(identity: Identity, secret: string | undefined): Promise<{ session: Session; text: string }> {
    const { name, role, key, expiresAt, projects, limits, organization } = identity
    const begunAt = this.#now()
    const endsAt = Math.min(begunAt + sessionLifeMs, expiresAt ?? Number.POSITIVE_INFINITY)
    const some = {
      ...(projects !== undefined && { projects }),
      ...(limits !== undefined && { limits }),
      ...(organization !== undefined && { organization }),
    }
    const session = { id: randomHex(16), name, role, key, ...some, begunAt, endsAt }
    const c = secret === undefined ? {} : { c: await this.#proofOf(secret) }
    const payload = {
      id: session.id,
      n: name,
      r: role,
      k: key,
      ...c,
      ...(organization !== undefined && { o: organization }),
      ...(projects && { pr: projects }),
      ...(limits && { l: limits }),
      at: begunAt,
      exp: endsAt,
    }
    return { session, text: await signText(await this.#options.key(), purpose, payload) }
  }

  /** The session of a text; undefined when it is not valid. `secretOf`: the current configured credentials of a key. */
  async read(text: string, secretOf: (key: string) => string | undefined): Promise<Session | undefined> {
    const payload = await verifySigned([await this.#options.key()], purpose, text)
    if (!Check(Payload, payload) || payload.exp <= this.#now()) return undefined
    const { id, n: name, r: role, k: key, c: proof, pr: projects, l: limits, o: organization } = payload
    const { at: begunAt, exp: endsAt } = payload
    const secret = secretOf(key)
    if (proof !== (secret === undefined ? undefined : await this.#proofOf(secret))) return undefined
    const session: Session = {
      id,
      name,
      role,
      key,
      begunAt,
      endsAt,
      ...(projects !== undefined && { projects }),
      ...(limits !== undefined && { limits }),
      ...(organization !== undefined && { organization }),
    }
    return (await this.#options.keeper.holds(session)) ? session : undefined
  }

  end(session: Session): Promise<void> {
    return this.#options.keeper.end(session)
  }

  /**
   * The name of the cookie. Each service has its own name: all ports of a host share cookies. With `__Host-` a browser accepts the
   * cookie by https only, and from no other host (RFC 6265bis, 4.1.3).
   */
  async cookieName(isSecure: boolean): Promise<string> {
    if (this.#name === undefined) {
      const bytes = new TextEncoder().encode('cookie')
      const mac = new Uint8Array(await crypto.subtle.sign('HMAC', await this.#options.key(), bytes))
      this.#name = `patchbay-${toHex(mac.slice(0, 4))}`
    }
    return isSecure ? `__Host-${this.#name}` : this.#name
  }

  async #proofOf(secret: string): Promise<string> {
    const known = this.#proof
    if (known?.[0] === secret) return known[1]
    const proof = (await signText(await this.#options.key(), 'configured credentials', secret)).slice(-43)
    this.#proof = [secret, proof]
    return proof
  }
}
