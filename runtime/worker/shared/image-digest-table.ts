import type { Hasher, ImageDigest, ImageDigests, UploadedImage } from '../../../src/fleet/images/image-digests.ts'
import { toHex } from '../../../src/lib/crypto/secret.ts'
import type { ImageKindName } from '../../../src/model/image.ts'

/** The digests of images that were uploaded through the gateway, in a table of the Durable Object. */
export class ImageDigestTable implements ImageDigests {
  readonly #sql: SqlStorage
  /** Called with a digest that no image has any more. */
  unused: (sha256: string) => void = () => {}

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS image_digests (kind TEXT, name TEXT, sha256 TEXT NOT NULL, by_admin INTEGER NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID',
    )
  }

  async get(kind: ImageKindName, name: string): Promise<ImageDigest | undefined> {
    const [row] = this.#sql
      .exec<Row>('SELECT sha256, by_admin FROM image_digests WHERE kind = ? AND name = ?', kind, name)
      .toArray()
    return row && { sha256: row.sha256, byAdmin: row.by_admin === 1 }
  }

  /** Does nothing: only a failed write shows that the database of a Durable Object is full. */
  async requireSpace(): Promise<void> {}

  async put(kind: ImageKindName, name: string, { sha256, byAdmin }: ImageDigest): Promise<void> {
    const before = await this.get(kind, name)
    this.#sql.exec('INSERT OR REPLACE INTO image_digests VALUES (?, ?, ?, ?)', kind, name, sha256, byAdmin ? 1 : 0)
    this.#left(before)
  }

  async remove(kind: ImageKindName, name: string): Promise<void> {
    const before = await this.get(kind, name)
    this.#sql.exec('DELETE FROM image_digests WHERE kind = ? AND name = ?', kind, name)
    this.#left(before)
  }

  async rename(kind: ImageKindName, name: string, to: string): Promise<void> {
    const before = await this.get(kind, to)
    // Without an await between them both are saved together.
    this.#sql.exec('DELETE FROM image_digests WHERE kind = ? AND name = ?', kind, to)
    this.#sql.exec('UPDATE image_digests SET name = ? WHERE kind = ? AND name = ?', to, kind, name)
    this.#left(before)
  }

  /** Whether an image has this digest. */
  isUsed(sha256: string): boolean {
    return this.named(sha256) !== undefined
  }

  /** An image that has this digest. */
  named(sha256: string): UploadedImage | undefined {
    const [row] = this.#sql
      .exec<Row>('SELECT kind, name, by_admin FROM image_digests WHERE sha256 = ? LIMIT 1', sha256)
      .toArray()
    if (row === undefined) return undefined
    const { kind, name, by_admin } = row
    return { kind, name, digest: { sha256, byAdmin: by_admin === 1 } }
  }

  #left(before: ImageDigest | undefined): void {
    if (before !== undefined && !this.isUsed(before.sha256)) this.unused(before.sha256)
  }
}

interface Row extends Record<string, SqlStorageValue> {
  kind: ImageKindName
  name: string
  sha256: string
  by_admin: number
}

export function workerHasher(): Hasher {
  const stream = new crypto.DigestStream('SHA-256')
  const writer = stream.getWriter()
  return {
    update: (bytes) => writer.write(bytes),
    async hex() {
      await writer.close()
      return toHex(new Uint8Array(await stream.digest))
    },
  }
}
