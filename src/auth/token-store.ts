import type { TokenRecord } from '../model/access-token.ts'

/** Where tokens are kept: a file, the storage of a Durable Object, memory. Records never hold a secret. */
export interface TokenStore {
  list(): Promise<readonly TokenRecord[]>
  get(tokenId: string): Promise<TokenRecord | undefined>
  /** Keeps it before it resolves. */
  put(record: TokenRecord): Promise<void>
  /** Keeps it in place of the one with its id; false when that is not there any more, as it was revoked meanwhile. */
  replace(record: TokenRecord): Promise<boolean>
  /** Nothing happens when there is none. */
  remove(tokenId: string): Promise<void>
}
