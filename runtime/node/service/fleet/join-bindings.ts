import { Type } from '@sinclair/typebox'
import type { JoinBindings } from '../../../../src/fleet/pool/join-tokens.ts'
import { ComputeId } from '../../../../src/model/compute.ts'
import { jsonOf } from '../../engine/storage/durable-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'

const FileContent = Type.Object({
  version: Type.Literal(1),
  /** Digest of a token of the settings -> id of the compute that used it first. */
  tokens: Type.Record(Type.String({ pattern: '^[0-9a-f]{64}$' }), ComputeId),
})

const format = {
  file: 'join-tokens.json',
  name: 'the computes of join tokens',
  parse: jsonOf(FileContent),
  lost: 'each token belongs to the compute that uses it first',
}

/** Which compute each of the `fleet.join_tokens` belongs to, in `{data}/join-tokens.json`; it has digests of them only. */
export class JoinBindingsFile implements JoinBindings {
  readonly #files: ServiceRecords
  #bound: ReadonlyMap<string, string>

  private constructor(files: ServiceRecords, bound: ReadonlyMap<string, string>) {
    this.#files = files
    this.#bound = bound
  }

  static async open(files: ServiceRecords): Promise<JoinBindingsFile> {
    const { value } = await files.read(format)
    return new JoinBindingsFile(files, new Map(Object.entries(value?.tokens ?? {})))
  }

  get(key: string): string | undefined {
    return this.#bound.get(key)
  }

  async put(key: string, computeId: string, isListed: (key: string) => boolean): Promise<void> {
    const bound = new Map([...this.#bound].filter(([it]) => isListed(it))).set(key, computeId)
    await this.#files.write(format, { version: 1, tokens: Object.fromEntries(bound) }, { isMore: true })
    this.#bound = bound
  }
}
