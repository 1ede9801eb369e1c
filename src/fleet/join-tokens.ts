import { sameText, sha256, toHex } from '../auth/secret.ts'

/** A join token that was good. */
export interface JoinGrant {
  /** Stands for the token, and is no secret. */
  readonly key: string
  /** The only compute that may join with it; absent: the token was never used, and was not made for one compute. */
  readonly compute_id?: string
}

/** The tokens with which computes join: in the settings and a file on Node, in a database elsewhere. Each belongs to one compute. */
export interface JoinTokens {
  /** What the token lets in; undefined for one that is not good. */
  check(token: string): Promise<JoinGrant | undefined>
  /**
   * Makes the token that of this compute, unless it is that of another; a change is kept when this resolves. Resolves with the
   * compute that the token belongs to now; undefined when the token is not good any more. One at a time.
   */
  bind(key: string, computeId: string): Promise<string | undefined>
  /** Whether a token that is good belongs to this compute (ids are compared without regard to case). */
  isOwned(computeId: string): Promise<boolean>
  /** What the token of that key lets in now; undefined when it is not good any more. */
  grantOf(key: string): Promise<JoinGrant | undefined>
}

/** Which compute used which of the tokens of a list first, by the keys of the tokens. */
export interface JoinBindings {
  get(key: string): string | undefined
  /** Kept when it resolves; those of tokens that `isListed` does not know are forgotten. */
  put(key: string, computeId: string, isListed: (key: string) => boolean): Promise<void>
}

interface Listed {
  readonly key: string
  readonly secret: string
  readonly compute_id?: string
}

/** Tokens of a list, asked for each time: `TOKEN`, or `COMPUTE_ID:TOKEN` for that compute. */
export function listedTokens(list: () => readonly string[], bindings: JoinBindings): JoinTokens {
  const listed = (): Promise<Listed[]> =>
    Promise.all(
      list().map(async (entry): Promise<Listed> => {
        const [id, secret = ''] = entry.includes(':') ? entry.split(':', 2) : [undefined, entry]
        const key = toHex(await sha256(`join token ${secret}`))
        const compute_id = id ?? bindings.get(key)
        return { key, secret, ...(compute_id !== undefined && { compute_id }) }
      }),
    )
  return {
    async check(token) {
      let found: JoinGrant | undefined
      // All of them, so that the time does not tell which it was.
      for (const { secret, ...grant } of await listed()) if (await sameText(token, secret)) found ??= grant
      return found
    },
    async bind(key, computeId) {
      const all = await listed()
      const known = all.find((it) => it.key === key)
      if (known === undefined || known.compute_id !== undefined) return known?.compute_id
      await bindings.put(key, computeId, (other) => all.some((it) => it.key === other))
      return computeId
    },
    isOwned: async (computeId) =>
      (await listed()).some(({ compute_id }) => compute_id?.toLowerCase() === computeId.toLowerCase()),
    async grantOf(key) {
      const found = (await listed()).find((it) => it.key === key)
      if (found === undefined) return undefined
      const { secret: _, ...grant } = found
      return grant
    },
  }
}

/** The tokens of both. */
export function eitherTokens(first: JoinTokens, second: JoinTokens | undefined): JoinTokens {
  if (second === undefined) return first
  return {
    check: async (token) => (await first.check(token)) ?? second.check(token),
    bind: async (key, computeId) => ((await first.grantOf(key)) === undefined ? second : first).bind(key, computeId),
    isOwned: async (computeId) => (await first.isOwned(computeId)) || second.isOwned(computeId),
    grantOf: async (key) => (await first.grantOf(key)) ?? second.grantOf(key),
  }
}
