import { Type } from '@sinclair/typebox'
import { computeKey } from '../../../../src/fleet/pool/computes.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { TokenRecord } from '../../../../src/model/access/access-token.ts'
import type { TokenStore } from '../../../../src/server/auth/token-store.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { jsonOf, removeVersionBefore } from '../../engine/storage/durable-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'

const FileContent = Type.Object({ version: Type.Literal(1), tokens: Type.Array(TokenRecord) })

const format = {
  file: 'tokens.json',
  name: 'the tokens',
  parse: jsonOf(FileContent),
  lost: 'no token is valid',
}

/** The tokens in `{data}/tokens.json`. */
export class TokenFile implements TokenStore {
  readonly #files: ServiceRecords
  /** Runs one change at a time, because each writes the whole file. */
  readonly #changes = new SerialQueue()
  #records: ReadonlyMap<string, TokenRecord>

  private constructor(files: ServiceRecords, records: readonly TokenRecord[]) {
    this.#files = files
    this.#records = new Map(records.map((record) => [record.token_id, record]))
  }

  static async open(files: ServiceRecords): Promise<TokenFile> {
    return new TokenFile(files, (await files.read(format)).value?.tokens ?? [])
  }

  async list(): Promise<readonly TokenRecord[]> {
    return [...this.#records.values()]
  }

  async count(): Promise<number> {
    return this.#records.size
  }

  async ofCompute(computeId: string): Promise<readonly TokenRecord[]> {
    const id = computeKey(computeId)
    return [...this.#records.values()].filter(
      ({ compute_id }) => compute_id !== undefined && computeKey(compute_id) === id,
    )
  }

  async get(tokenId: string): Promise<TokenRecord | undefined> {
    return this.#records.get(tokenId)
  }

  put(record: TokenRecord): Promise<void> {
    return this.#changes.run(() => this.#write(new Map(this.#records).set(record.token_id, record), { isMore: true }))
  }

  replace(record: TokenRecord): Promise<boolean> {
    return this.#changes.run(async () => {
      if (!this.#records.has(record.token_id)) return false
      await this.#write(new Map(this.#records).set(record.token_id, record))
      return true
    })
  }

  remove(tokenId: string): Promise<void> {
    return this.#changes.run(async () => {
      const records = new Map(this.#records)
      if (!records.delete(tokenId)) return
      await this.#write(records)
      // The backup still has the token, and would restore it if the file were damaged.
      await withDiskErrors('The token is revoked, but the backup still has it', () =>
        removeVersionBefore(this.#files.pathOf(format.file)),
      )
    })
  }

  async #write(records: ReadonlyMap<string, TokenRecord>, options?: { isMore: boolean }): Promise<void> {
    await this.#files.write(format, { version: 1, tokens: [...records.values()] }, options)
    this.#records = records
  }
}
