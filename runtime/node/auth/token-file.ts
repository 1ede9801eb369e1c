import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { SerialQueue } from '../../../src/async/serial-queue.ts'
import type { TokenStore } from '../../../src/auth/token-store.ts'
import { TokenRecord } from '../../../src/model/access-token.ts'

import type { Log } from '../log/log.ts'
import { requireSpace, translated } from '../storage/disk.ts'
import { readDurable, removeTemporaries, removeVersionBefore, writeDurable } from '../storage/durable-file.ts'
import { closeToOthers, putAside } from '../storage/secret-file.ts'

const FileContent = Type.Object({ version: Type.Literal(1), tokens: Type.Array(TokenRecord) })

interface TokenFileOptions {
  readonly data: string
  readonly minFreeMb: () => number
  readonly log: Log
}

/** The tokens in `{data}/tokens.json`, which nobody else may read. */
export class TokenFile implements TokenStore {
  readonly #directory: string
  readonly #path: string
  readonly #minFreeMb: () => number
  #records: ReadonlyMap<string, TokenRecord>
  readonly #writes = new SerialQueue()

  private constructor({ data, minFreeMb }: TokenFileOptions, path: string, records: readonly TokenRecord[]) {
    this.#directory = data
    this.#path = path
    this.#minFreeMb = minFreeMb
    this.#records = new Map(records.map((record) => [record.token_id, record]))
  }

  static async open(options: TokenFileOptions): Promise<TokenFile> {
    const { data, log } = options
    const path = join(data, 'tokens.json')
    await removeTemporaries(data)
    const found = await readDurable(path, (text) => {
      const value: unknown = JSON.parse(text)
      if (!Check(FileContent, value)) throw new Error('not the tokens of a service')
      return value.tokens
    })
    if (found?.damaged === true) log.warn({ path }, 'the tokens are read from the copy before')
    if (found === undefined && (await putAside(path))) {
      log.error({ path }, 'the tokens cannot be read; they were put aside, and none is taken')
    }
    for (const it of [path, `${path}.bak`]) await closeToOthers(it)
    return new TokenFile(options, path, found?.value ?? [])
  }

  async list(): Promise<readonly TokenRecord[]> {
    return [...this.#records.values()]
  }

  async get(tokenId: string): Promise<TokenRecord | undefined> {
    return this.#records.get(tokenId)
  }

  put(record: TokenRecord): Promise<void> {
    return this.#writes.run(async () => {
      await requireSpace(this.#directory, this.#minFreeMb())
      await this.#write(new Map(this.#records).set(record.token_id, record))
    })
  }

  replace(record: TokenRecord): Promise<boolean> {
    return this.#writes.run(async () => {
      if (!this.#records.has(record.token_id)) return false
      await this.#write(new Map(this.#records).set(record.token_id, record))
      return true
    })
  }

  remove(tokenId: string): Promise<void> {
    return this.#writes.run(async () => {
      const records = new Map(this.#records)
      if (!records.delete(tokenId)) return
      await this.#write(records)
      // The copy before still has it, and would bring it back when the file is damaged.
      await translated('The token is revoked, and a copy of it was left', () => removeVersionBefore(this.#path))
    })
  }

  async #write(records: ReadonlyMap<string, TokenRecord>): Promise<void> {
    const content = { version: 1, tokens: [...records.values()] }
    await translated('The tokens were not saved', () =>
      writeDurable(this.#path, `${JSON.stringify(content, null, 2)}\n`),
    )
    this.#records = records
  }
}
