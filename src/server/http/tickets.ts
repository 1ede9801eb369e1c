import { randomHex } from '../../lib/crypto/secret.ts'
import type { Identity } from '../../model/access/identity.ts'

/** How long a ticket can be used, ms. */
export const ticketLifeMs = 30_000
const maxTickets = 1000

interface Issued {
  readonly identity: Identity
  readonly expiry: number
}

/** Issues and redeems tickets. */
export interface TicketOffice {
  issue(identity: Identity): string | Promise<string>
  redeem(ticket: string): Identity | undefined | Promise<Identity | undefined>
  void(key: string): void
}

/** Separate tickets for each organization: many tickets of one do not void those of another. */
export class OrganizationTickets implements TicketOffice {
  readonly #offices = new Map<string, Tickets>()

  issue(identity: Identity): string {
    const { organization = '' } = identity
    const office = this.#offices.get(organization) ?? new Tickets()
    this.#offices.set(organization, office)
    return `${organization === '' ? '' : `${organization}.`}${office.issue(identity)}`
  }

  redeem(ticket: string): Identity | undefined {
    const dot = ticket.indexOf('.')
    return this.#offices.get(ticket.slice(0, Math.max(dot, 0)))?.redeem(ticket.slice(dot + 1))
  }

  void(key: string): void {
    for (const office of this.#offices.values()) office.void(key)
  }

  /** Voids the tickets of an organization that is deleted. */
  drop(organization: string): void {
    this.#offices.delete(organization)
  }
}

/** Single-use tickets: a browser cannot send Authorization when it opens a websocket. */
export class Tickets implements TicketOffice {
  readonly #issued = new Map<string, Issued>()

  /** A new ticket for the caller's credential. Beyond a thousand unused tickets the oldest is void. */
  issue(identity: Identity, now = Date.now()): string {
    for (const [ticket, { expiry }] of this.#issued) {
      if (expiry > now && this.#issued.size < maxTickets) break
      this.#issued.delete(ticket)
    }
    const ticket = randomHex(24)
    // A ticket is an explicit credential: no browser sends it by itself.
    this.#issued.set(ticket, { identity: { ...identity, ambient: false }, expiry: now + ticketLifeMs })
    return ticket
  }

  /** Redeems a ticket: the identity that it stands for. It is void from then on. */
  redeem(ticket: string, now = Date.now()): Identity | undefined {
    const issued = this.#issued.get(ticket)
    this.#issued.delete(ticket)
    return issued !== undefined && issued.expiry > now ? issued.identity : undefined
  }

  /** Voids the tickets of a credential, or of the session with this id. */
  void(key: string): void {
    for (const [ticket, { identity }] of this.#issued) {
      if (identity.key === key || identity.session?.id === key) this.#issued.delete(ticket)
    }
  }
}
