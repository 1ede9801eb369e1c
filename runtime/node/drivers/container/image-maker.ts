import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { requireSpace, withDiskErrors } from '../../engine/storage/disk.ts'
import { contentOf } from '../../engine/storage/stored-file.ts'
import { letIn, permissions } from '../../os/sandbox/user.ts'
import type { Engine } from './engine.ts'
import { copyToLayout } from './image-store.ts'
import { imageLayerWords } from './layer-scripts.ts'
import { perl } from './layers.ts'
import { makeOpen, removeInside, runInside } from './tools.ts'

/** An image that is made of another one and a layer. */
interface WantedImage {
  /** The file of the image that the node was made of. */
  readonly base: string
  readonly layer: string
  /** The paths in the container of the files of its settings, and their names in the layer. */
  readonly files: readonly (readonly [path: string, name: string])[]
  /** What has failed when it fails: the beginning of a sentence. */
  readonly failure: string
}

/** Makes images of containers, below a directory of the service, as root of the namespaces and without a network. */
export class ImageMaker {
  readonly #directory: string
  readonly #minFreeMb: () => number

  constructor(directory: string, minFreeMb: () => number) {
    this.#directory = directory
    this.#minFreeMb = minFreeMb
  }

  /**
   * Makes an OCI archive, and has it stored. `holding` runs what reads the layer: while it runs, the layer stays. The base comes first, as it
   * takes longest. 409, 507.
   */
  async make<T>(
    engine: Engine,
    { base, layer, files, failure }: WantedImage,
    signal: AbortSignal | undefined,
    {
      holding,
      store,
    }: {
      holding(read: () => Promise<void>): Promise<void>
      store(content: ReadableStream<Uint8Array>, size: number): Promise<T>
    },
  ): Promise<T> {
    // The name of what is left here by a service that was killed: the store of images removes it (`ImageStore.tidy`).
    const work = join(this.#directory, `made.${randomUUID()}`)
    const { ids, skopeo, umoci } = engine
    const minFreeMb = this.#minFreeMb()
    const common = { ids, disk: this.#directory, minFreeMb, failure, signal }
    const to = { name: 'to', path: work, isWritable: true }
    await withDiskErrors(failure, async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      await requireSpace(this.#directory, minFreeMb)
      await makeOpen(work)
    })
    try {
      await letIn(base, { name: 'containers', uid: ids.firstUid, gid: ids.firstGid }, permissions.read)
      const from = { name: 'from', path: base, isWritable: false }
      await runInside({ ...common, places: [from, to], program: ['/bin/sh', '-c', copyToLayout, skopeo] })
      await holding(() =>
        withOutput(failure, join(work, 'layer.tar'), ({ fd }) =>
          runInside({
            ...common,
            ...{ output: fd, places: [{ name: 'layer', path: layer, isWritable: false }] },
            program: perl(imageLayerWords('/mnt/layer', files.flat())),
          }),
        ),
      )
      return await withOutput(failure, join(work, 'image.tar'), async (file) => {
        await runInside({
          ...{ ...common, output: file.fd, places: [to] },
          program: ['/bin/sh', '-c', addLayer, skopeo, umoci],
        })
        const { size } = await file.stat()
        return store(contentOf(file, size), size)
      })
    } finally {
      await removeInside(ids, work)
    }
  }
}

/**
 * A new file that root of the namespaces reads, in a directory that only the service and it reach. That may have put a link there: none is
 * followed, and the file is not opened again.
 */
async function withOutput<T>(failure: string, path: string, use: (file: FileHandle) => Promise<T>): Promise<T> {
  await using file = await withDiskErrors(failure, () => open(path, 'wx+', 0o644))
  await file.chmod(0o644)
  return await use(file)
}

const addLayer = `set -e; umask 022; cd /mnt/to; export HOME=/mnt/to TMPDIR=/mnt/to
"$1" raw add-layer --image oci:image layer.tar >&2
"$0" --insecure-policy --tmpdir /mnt/to copy -q oci:oci:image oci-archive:made.tar:image >&2
rm -rf oci; cat made.tar`
