import { Type } from '@sinclair/typebox'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { jsonOf } from '../../engine/storage/durable-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'

/** Most digests that are kept; the oldest are forgotten first, and their files have to be trusted again. */
const maxKept = 1000

const format = {
  file: 'trusted-files.json',
  name: 'the trusted files',
  parse: jsonOf(
    Type.Object({ version: Type.Literal(1), digests: Type.Array(Type.String({ pattern: '^[0-9a-f]{64}$' })) }),
  ),
  lost: 'files have to be trusted again',
}

/** The digests of what trusted files run and open, in `{data}/trusted-files.json`. */
export class TrustedFiles {
  readonly #records: ServiceRecords
  readonly #changes = new SerialQueue()
  #digests: ReadonlySet<string>

  private constructor(records: ServiceRecords, digests: ReadonlySet<string>) {
    this.#records = records
    this.#digests = digests
  }

  static async open(records: ServiceRecords): Promise<TrustedFiles> {
    const { value } = await records.read(format)
    return new TrustedFiles(records, new Set(value?.digests ?? []))
  }

  has(digest: string): boolean {
    return this.#digests.has(digest)
  }

  /** 507 when it cannot be stored. */
  add(digest: string): Promise<void> {
    return this.#changes.run(async () => {
      if (this.#digests.has(digest)) return
      const digests = [...this.#digests, digest].slice(-maxKept)
      await this.#records.write(format, { version: 1, digests })
      this.#digests = new Set(digests)
    })
  }
}
