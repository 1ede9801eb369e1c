import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { JoinBindings } from '../../../src/fleet/join-tokens.ts'
import { ComputeId } from '../../../src/model/compute.ts'
import type { Log } from '../log/log.ts'
import { requireSpace, translated } from '../storage/disk.ts'
import { readDurable, writeDurable } from '../storage/durable-file.ts'
import { putAside } from '../storage/secret-file.ts'

const FileContent = Type.Object({
  version: Type.Literal(1),
  /** Digest of a token of the settings -> id of the compute that used it first. */
  tokens: Type.Record(Type.String({ pattern: '^[0-9a-f]{64}$' }), ComputeId),
})

interface JoinBindingsOptions {
  readonly data: string
  readonly minFreeMb: () => number
  readonly log: Log
}

/** Which compute each of the `fleet.join_tokens` belongs to, in `{data}/join-tokens.json`; it has digests of them only. */
export class JoinBindingsFile implements JoinBindings {
  readonly #options: JoinBindingsOptions
  readonly #path: string
  #bound: ReadonlyMap<string, string>

  private constructor(options: JoinBindingsOptions, path: string, bound: ReadonlyMap<string, string>) {
    this.#options = options
    this.#path = path
    this.#bound = bound
  }

  static async open(options: JoinBindingsOptions): Promise<JoinBindingsFile> {
    const path = join(options.data, 'join-tokens.json')
    const found = await readDurable(path, (text) => {
      const value: unknown = JSON.parse(text)
      if (!Check(FileContent, value)) throw new Error('not the computes of join tokens')
      return value.tokens
    })
    if (found?.damaged === true) options.log.warn({ path }, 'the computes of join tokens are read from the copy before')
    if (found === undefined && (await putAside(path))) {
      const what =
        'the computes of join tokens cannot be read and were put aside: each token belongs to who uses it first'
      options.log.error({ path }, what)
    }
    return new JoinBindingsFile(options, path, new Map(Object.entries(found?.value ?? {})))
  }

  get(key: string): string | undefined {
    return this.#bound.get(key)
  }

  async put(key: string, computeId: string, isListed: (key: string) => boolean): Promise<void> {
    const { data, minFreeMb } = this.#options
    await requireSpace(data, minFreeMb())
    const bound = new Map([...this.#bound].filter(([it]) => isListed(it))).set(key, computeId)
    const content = { version: 1, tokens: Object.fromEntries(bound) }
    await translated('The compute of the join token was not saved', () =>
      writeDurable(this.#path, `${JSON.stringify(content, null, 2)}\n`),
    )
    this.#bound = bound
  }
}
