import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { randomHex } from '../../lib/crypto/secret.ts'
import { Role, TokenLimits } from '../../model/access/access-token.ts'
import type { Identity } from '../../model/access/identity.ts'
import type { EndedSession } from '../auth/ended-sessions.ts'
import { signText, verifySigned } from '../auth/signed-text.ts'
import { type TicketOffice, ticketLifeMs } from './tickets.ts'

const purpose = 'ticket'

const Payload = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 64 }),
  name: Type.String(),
  role: Role,
  key: Type.String(),
  /** See `Identity.projects`. */
  pr: Type.Optional(Type.Array(Type.String())),
  /** See `Identity.limits`. */
  l: Type.Optional(TokenLimits),
  /** See `Identity.organization`. */
  o: Type.Optional(Type.String()),
  /** The session of the ticket: its id, begin and end, ms since 1970. */
  s: Type.Optional(Type.Object({ id: Type.String(), at: Type.Integer(), exp: Type.Integer() })),
  /** Expires, ms since 1970. */
  exp: Type.Integer(),
})

/** A ticket with a valid signature that has not expired. */
export interface TicketUse {
  readonly id: string
  /** The credential of the ticket; see `Identity.key`. */
  readonly key: string
  /** Absent: `default`. */
  readonly organization?: string
  /** When it expires, ms since 1970. */
  readonly expires: number
  /** The session in which the ticket was issued. */
  readonly session?: EndedSession
}

export interface SignedTicketsOptions {
  readonly key: () => Promise<CryptoKey>
  /** Records the use of a ticket; false: it was used before, or its credential or session is no longer valid. */
  readonly use: (ticket: TicketUse) => Promise<boolean>
  readonly now?: () => number
}

/**
 * Single-use tickets that every process with the key issues and verifies. One place records the uses; it is not asked about a text
 * without a valid signature.
 */
export class SignedTickets implements TicketOffice {
  readonly #options: SignedTicketsOptions
  readonly #now: () => number

  constructor(options: SignedTicketsOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  async issue({ name, role, key, session, projects, limits, organization }: Identity): Promise<string> {
    const s = session === undefined ? {} : { s: { id: session.id, at: session.begunAt, exp: session.endsAt } }
    const payload = {
      id: randomHex(16),
      name,
      role,
      key,
      ...s,
      ...(projects && { pr: projects }),
      ...(limits && { l: limits }),
      ...(organization !== undefined && { o: organization }),
      exp: this.#now() + ticketLifeMs,
    }
    return signText(await this.#options.key(), purpose, payload)
  }

  async redeem(ticket: string): Promise<Identity | undefined> {
    const payload = await verifySigned([await this.#options.key()], purpose, ticket)
    if (!Check(Payload, payload) || payload.exp <= this.#now()) return undefined
    const { id, name, role, key, s, pr, l, o, exp } = payload
    const owner = o !== undefined && { organization: o }
    const session = s === undefined ? {} : { session: { id: s.id, begunAt: s.at, endsAt: s.exp } }
    if (!(await this.#options.use({ id, key, expires: exp, ...session, ...owner }))) return undefined
    // A ticket is an explicit credential: no browser sends it by itself.
    const some = { ...(pr !== undefined && { projects: pr }), ...(l !== undefined && { limits: l }) }
    return { name, role, key, ambient: false, ...some, ...owner }
  }

  /** The place that records uses checks whether the credential is still valid. */
  void(): void {}
}
