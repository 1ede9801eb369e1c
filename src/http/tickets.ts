/** How long a ticket can be used, ms. */
export const ticketLifeMs = 30_000
const mostTickets = 1000

/** Single-use tickets: a browser cannot send Authorization when it opens a websocket. */
export class Tickets {
  readonly #expiry = new Map<string, number>()

  /** A new ticket; beyond a thousand unused ones the oldest is void. */
  issue(now = Date.now()): string {
    for (const [ticket, expiry] of this.#expiry) {
      if (expiry > now && this.#expiry.size < mostTickets) break
      this.#expiry.delete(ticket)
    }
    const bytes = crypto.getRandomValues(new Uint8Array(24))
    const ticket = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
    this.#expiry.set(ticket, now + ticketLifeMs)
    return ticket
  }

  /** Whether the ticket is good; it is void from then on. */
  redeem(ticket: string, now = Date.now()): boolean {
    const expiry = this.#expiry.get(ticket)
    this.#expiry.delete(ticket)
    return expiry !== undefined && expiry > now
  }
}
