import { SerialQueue } from '../../lib/async/serial-queue.ts'
import { badRequest, conflict, notFound } from '../../lib/errors/api-error.ts'
import type { TokenRecord } from '../../model/access/access-token.ts'
import type { Identity } from '../../model/access/identity.ts'
import { maxSshKeys, parseSshKey, type SshKey } from '../../model/access/ssh-key.ts'
import type { TokenStore } from './token-store.ts'
import { isExpired } from './token-text.ts'

export interface TokenKeysOptions {
  readonly store: TokenStore
  readonly now: () => number
  readonly identityOf: (record: TokenRecord) => Identity | undefined
}

/** The public keys of the tokens of a service that accepts SSH connections. A key belongs to one token. */
export class TokenKeys {
  readonly #options: TokenKeysOptions
  /** Changes run one after the other: each reads the record that it writes. */
  readonly #changes = new SerialQueue()

  constructor(options: TokenKeysOptions) {
    this.#options = options
  }

  /** Adds the key of a line of OpenSSH to a token. 400, 404; 409 when a token has it, or too many. */
  async add(tokenId: string, line: string): Promise<SshKey> {
    const key: SshKey = { ...(await parseSshKey(line)), added_at: new Date(this.#options.now()).toISOString() }
    return this.#changes.run(async () => {
      const record = await this.#token(tokenId)
      if (record.purpose === 'join') throw badRequest('token_id: a join token is for a compute, and has no SSH keys')
      const owner = await this.#ownerOf(key.public_key)
      if (owner !== undefined)
        throw conflict(`The token ${owner.name} (${owner.token_id}) has this key already: a key belongs to one token`)
      const keys = record.ssh_keys ?? []
      if (keys.length >= maxSshKeys) throw conflict(`A token has at most ${maxSshKeys} SSH keys: remove one first`)
      await this.#replace({ ...record, ssh_keys: [...keys, key] })
      return key
    })
  }

  /** Removes a key: nobody logs in with it any more. 404. */
  remove(tokenId: string, keyId: string): Promise<void> {
    return this.#changes.run(async () => {
      const { ssh_keys = [], ...record } = await this.#token(tokenId)
      const left = ssh_keys.filter(({ key_id }) => key_id !== keyId)
      if (left.length === ssh_keys.length) throw notFound(`The token has no SSH key ${keyId.slice(0, 40)}`)
      await this.#replace(left.length === 0 ? record : { ...record, ssh_keys: left })
    })
  }

  /** The identity of the token that has a key, as `SshKey.public_key` has it; undefined: no valid token has it. */
  async identify(publicKey: string): Promise<Identity | undefined> {
    const record = await this.#ownerOf(publicKey)
    return record === undefined || isExpired(record, this.#options.now()) ? undefined : this.#options.identityOf(record)
  }

  async #ownerOf(publicKey: string): Promise<TokenRecord | undefined> {
    const all = await this.#options.store.list()
    return all.find(({ ssh_keys }) => ssh_keys?.some(({ public_key }) => public_key === publicKey))
  }

  async #token(tokenId: string): Promise<TokenRecord> {
    const record = await this.#options.store.get(tokenId)
    if (record === undefined) throw notFound(`No such token: ${tokenId.slice(0, 40)}`)
    return record
  }

  /** 404 when the token was revoked meanwhile. */
  async #replace(record: TokenRecord): Promise<void> {
    if (!(await this.#options.store.replace(record))) throw notFound(`No such token: ${record.token_id}`)
  }
}
