import { sameText } from '../auth/secret.ts'

/** What a join token lets in. */
export interface JoinGrant {
  /** The only compute that may join with it. */
  readonly compute_id?: string
}

/** The tokens with which computes join: in the settings on Node, in a database elsewhere. */
export interface JoinTokens {
  /** What the token lets in; undefined for one that is not known. */
  check(token: string): Promise<JoinGrant | undefined>
}

/** Tokens of a list, asked for each time: `TOKEN`, or `COMPUTE_ID:TOKEN` for one compute only. */
export const listedTokens = (list: () => readonly string[]): JoinTokens => ({
  async check(token) {
    let found: JoinGrant | undefined
    // All of them, so that the time does not tell which it was.
    for (const entry of list()) {
      const [id, secret] = entry.includes(':') ? entry.split(':', 2) : [undefined, entry]
      if (await sameText(token, secret ?? '')) found ??= id === undefined ? {} : { compute_id: id }
    }
    return found
  },
})
