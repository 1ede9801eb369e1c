import type { JoinGrant, JoinTokens } from '../../src/fleet/pool/join-tokens.ts'

/** Join tokens of tests: every one is good, but for those that were revoked, and belongs to the compute that used it first. */
export class MemoryJoinTokens implements JoinTokens {
  readonly owners = new Map<string, string>()
  readonly revoked = new Set<string>()
  /** Those whose look-up fails. */
  readonly unknowable = new Set<string>()

  check(token: string): Promise<JoinGrant | undefined> {
    return this.grantOf(token)
  }

  async grantOf(key: string): Promise<JoinGrant | undefined> {
    if (this.unknowable.has(key)) throw new Error('the directory does not answer')
    const compute_id = this.owners.get(key)
    if (this.revoked.has(key)) return undefined
    return { key, ...(compute_id !== undefined && { compute_id }) }
  }

  async bind(key: string, computeId: string): Promise<string | undefined> {
    if (this.revoked.has(key)) return undefined
    if (!this.owners.has(key)) this.owners.set(key, computeId)
    return this.owners.get(key)
  }

  async isOwned(computeId: string): Promise<boolean> {
    const wanted = computeId.toLowerCase()
    return [...this.owners].some(([key, id]) => id.toLowerCase() === wanted && !this.revoked.has(key))
  }
}
