import type { TokenRecord } from '../../model/access/access-token.ts'

/** The storage of tokens: a file, the storage of a Durable Object, memory. Records never hold a secret. */
export interface TokenStore {
  list(): Promise<readonly TokenRecord[]>
  count(): Promise<number>
  /** The tokens with this `compute_id`, in upper or lower case. */
  ofCompute(computeId: string): Promise<readonly TokenRecord[]>
  get(tokenId: string): Promise<TokenRecord | undefined>
  /** Stores a record before the promise resolves. */
  put(record: TokenRecord): Promise<void>
  /** Replaces the record with the same id; false: that token was revoked meanwhile. */
  replace(record: TokenRecord): Promise<boolean>
  /** Does nothing for an unknown id. */
  remove(tokenId: string): Promise<void>
}
