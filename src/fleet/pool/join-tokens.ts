import { sameText, sha256, toHex } from '../../lib/crypto/secret.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import { computeKey } from './computes.ts'

/** The rights of a valid join token. */
export interface JoinGrant {
  /** Identifies the token without being a secret. */
  readonly key: string
  /** The only compute that may join with it; absent: the token was never used, and was not made for one compute. */
  readonly compute_id?: string
}

/** The join tokens: in the settings and a file on Node, in a database elsewhere. Each belongs to one compute. */
export interface JoinTokens {
  /** The grant of a token; undefined for an invalid token. */
  check(token: string): Promise<JoinGrant | undefined>
  /**
   * Binds the token to this compute, unless it belongs to another; a change is saved when this resolves. Resolves with the owner of
   * the token; undefined when the token is no longer valid. Calls run one at a time.
   */
  bind(key: string, computeId: string): Promise<string | undefined>
  /** Whether a valid token belongs to this compute (ids are case-insensitive). */
  isOwned(computeId: string): Promise<boolean>
  /** The grant of the token with this key; undefined when it is no longer valid. */
  grantOf(key: string): Promise<JoinGrant | undefined>
}

/** Binds a token. 409 for the token of another compute, and for an unused token when the compute already has a token. */
export async function claimToken(tokens: JoinTokens | undefined, key: string, id: string): Promise<void> {
  const grant = await tokens?.grantOf(key)
  if (tokens === undefined || grant === undefined) throw conflict('The token was revoked')
  if (grant.compute_id === undefined && (await tokens.isOwned(id))) {
    throw conflict(
      `The compute ${id} joins with another token: use or revoke that token, or create one with its compute_id`,
    )
  }
  const owner = grant.compute_id ?? (await tokens.bind(key, id))
  if (owner === undefined) throw conflict('The token was revoked')
  if (computeKey(owner) !== computeKey(id))
    throw conflict('The token belongs to another compute: each compute needs its own')
}

/** The first compute of each token in a list, by the key of the token. */
export interface JoinBindings {
  get(key: string): string | undefined
  /** Saves a binding, and drops the bindings of tokens that are not listed. */
  put(key: string, computeId: string, isListed: (key: string) => boolean): Promise<void>
}

interface Listed {
  readonly key: string
  readonly secret: string
  readonly compute_id?: string
}

/** Tokens of a list, which is read for each call: `TOKEN`, or `COMPUTE_ID:TOKEN` for that compute. */
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
      // Compares with all tokens: the time must not reveal which token matched.
      for (const { secret, ...grant } of await listed()) if (await sameText(token, secret)) found ??= grant
      return found
    },
    async bind(key, computeId) {
      const all = await listed()
      const known = all.find((it) => it.key === key)
      if (known === undefined || known.compute_id !== undefined) return known?.compute_id
      await bindings.put(key, computeId, (other) => all.some((token) => token.key === other))
      return computeId
    },
    isOwned: async (computeId) =>
      (await listed()).some(
        ({ compute_id }) => compute_id !== undefined && computeKey(compute_id) === computeKey(computeId),
      ),
    async grantOf(key) {
      const found = (await listed()).find((it) => it.key === key)
      if (found === undefined) return undefined
      const { secret: _, ...grant } = found
      return grant
    },
  }
}

/** The tokens of both sources. */
export function eitherTokens(first: JoinTokens, second: JoinTokens | undefined): JoinTokens {
  if (second === undefined) return first
  return {
    check: async (token) => (await first.check(token)) ?? second.check(token),
    bind: async (key, computeId) => ((await first.grantOf(key)) === undefined ? second : first).bind(key, computeId),
    isOwned: async (computeId) => (await first.isOwned(computeId)) || second.isOwned(computeId),
    grantOf: async (key) => (await first.grantOf(key)) ?? second.grantOf(key),
  }
}
