import type { ApplianceImage } from '../importers/appliance.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { type Image, type ImageKindName, isImageKind } from '../model/image.ts'
import type { ApplianceImport } from '../model/lab/appliance.ts'
import type { ComputeAgents } from './computes/agents.ts'
import type { ComputePool } from './computes/compute-pool.ts'

/** The names of images on the connected computes, by their digests. A compute that fails to list its images is left out. */
export async function applianceImages(
  images: readonly ApplianceImage[],
  kind: string,
  { computes, agentFor }: { computes: ComputePool; agentFor: ComputeAgents },
): Promise<ApplianceImport['images']> {
  const ids = images.length > 0 && isImageKind(kind) ? await computes.all() : []
  const lists = await mapLimit(ids, (id) =>
    agentFor(id)
      .images.list(kind as ImageKindName)
      .catch(() => []),
  )
  const there: readonly Image[] = lists.flat()
  return images.map(({ setting, filename, md5, size, from }) => {
    const same = md5 === undefined ? undefined : there.find((other) => other.md5sum === md5)
    const namesake = there.find(({ path }) => path === filename)
    // Another image has this name already: the digest in the name tells the two apart.
    const free = namesake === undefined || md5 === undefined ? filename : withDigest(filename, md5)
    const image = same?.path ?? free
    const isMissing = same === undefined && (md5 !== undefined || namesake === undefined)
    return { setting, filename, md5: md5 ?? null, size: size ?? null, from: from ?? null, image, is_missing: isMissing }
  })
}

const withDigest = (filename: string, md5: string): string => filename.replace(/(\.[^./]*)?$/, `-${md5.slice(0, 8)}$1`)
