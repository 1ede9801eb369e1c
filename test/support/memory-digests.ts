import { createHash } from 'node:crypto'
import type { Hasher, ImageDigest, ImageDigests } from '../../src/fleet/images/image-digests.ts'

/** Digests of images that are gone with their test. */
export class MemoryDigests implements ImageDigests {
  readonly map = new Map<string, ImageDigest>()

  async get(kind: string, name: string): Promise<ImageDigest | undefined> {
    return this.map.get(`${kind}/${name}`)
  }

  async requireSpace(): Promise<void> {}

  async put(kind: string, name: string, digest: ImageDigest): Promise<void> {
    this.map.set(`${kind}/${name}`, digest)
  }

  async remove(kind: string, name: string): Promise<void> {
    this.map.delete(`${kind}/${name}`)
  }

  async rename(kind: string, name: string, to: string): Promise<void> {
    const digest = this.map.get(`${kind}/${name}`)
    this.map.delete(`${kind}/${name}`)
    this.map.delete(`${kind}/${to}`)
    if (digest !== undefined) this.map.set(`${kind}/${to}`, digest)
  }
}

export const sha256Of = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

export function testHasher(): Hasher {
  const hash = createHash('sha256')
  return { update: (bytes) => void hash.update(bytes), hex: async () => hash.digest('hex') }
}
