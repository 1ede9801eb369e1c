import { constants, lstat, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { requireSpace, withDiskErrors } from '../../engine/storage/disk.ts'
import { removeDurable, renameDurable } from '../../engine/storage/durable-file.ts'
import { findPerl } from '../../os/sandbox/step.ts'
import type { IdRange } from './ids.ts'
import { packWords, unpackWords } from './layer-scripts.ts'
import type { ContainerKindNode } from './properties.ts'
import { makeOpen, removeInside, runInside } from './tools.ts'

/** The layer of a node as an archive, in the directory of the node: its copies, snapshots, exports and moves have it. */
const archiveName = 'layer.tar'
/** A tar archive without entries: of a node that has written nothing. */
const emptyArchive = Buffer.alloc(1024)

type LayeredNode = Pick<ContainerKindNode, 'directory' | 'record'>

/**
 * What containers write: `{directory}/{node_id}/layer`, of which overlayfs makes the root file system, and an archive in the directory of
 * the node. While there is an archive, the layer is what it says: it was made of the layer since the node stopped last, or came with an
 * import, a copy or a restore. A start removes it. docs/decisions/containers.md says why there are two.
 */
export class Layers {
  readonly #directory: string
  readonly #minFreeMb: () => number

  constructor(directory: string, minFreeMb: () => number) {
    this.#directory = directory
    this.#minFreeMb = minFreeMb
  }

  /** The directory of a node that is outside its project. */
  placeOf(nodeId: string): string {
    return join(this.#directory, nodeId)
  }

  layerOf(nodeId: string): string {
    return join(this.placeOf(nodeId), 'layer')
  }

  /** Makes the layer ready for a start; its path. */
  async prepare(ids: IdRange, node: LayeredNode, signal: AbortSignal): Promise<string> {
    const layer = await this.unpacked(ids, node, signal)
    const archive = join(node.directory, archiveName)
    await withDiskErrors('The layer of the container', async () => {
      if ((await identityOf(archive)) !== undefined) await removeDurable(archive)
      await rm(this.#madeOf(node.record.node_id), { force: true })
    })
    return layer
  }

  /** The layer of a stopped node, which is as its archive says, if there is one; the archive stays. */
  async unpacked(ids: IdRange, node: LayeredNode, signal: AbortSignal): Promise<string> {
    const { directory, record } = node
    const [layer, madeOf] = [this.layerOf(record.node_id), this.#madeOf(record.node_id)]
    await this.#tidy(ids, node)
    await withDiskErrors('The layer of the container', async () => {
      await this.#makePlace(node)
      const known = await readFile(madeOf, 'utf8').catch(() => undefined)
      const identity = await identityOf(join(directory, archiveName))
      if (identity !== undefined && identity !== known) {
        await this.#unpack(ids, node, signal)
        await writeFile(madeOf, identity)
      }
      await makeOpen(layer)
    })
    return layer
  }

  /**
   * Writes the archive of a layer into a directory: that of the node, which is stopped, or a copy of it, also while the node runs. Does
   * nothing while the directory of the node has one. The number of bytes.
   */
  gather(ids: IdRange, node: LayeredNode, directory: string, signal?: AbortSignal): Promise<number> {
    const { node_id, name } = node.record
    return withDiskErrors('The files of the container', async () => {
      const isOwn = directory === node.directory
      if (isOwn) await this.#tidy(ids, node)
      if ((await identityOf(join(node.directory, archiveName))) !== undefined) return 0
      const layer = this.layerOf(node_id)
      const hasLayer = await isThere(layer)
      if (!hasLayer && isOwn) return 0
      const archive = join(directory, archiveName)
      const half = `${archive}.part`
      await requireSpace(directory, this.#minFreeMb())
      try {
        // Another file of that name, or a link, is not written to.
        await rm(half, { force: true })
        await using file = await open(half, 'wx', 0o600)
        if (hasLayer)
          await runInside({
            ...{ ids, signal, disk: directory, output: file.fd },
            places: [{ name: 'layer', path: layer, isWritable: false }],
            program: perl(packWords('/mnt/layer')),
            minFreeMb: this.#minFreeMb(),
            failure: `What ${name} has written cannot be copied`,
          })
        else await file.write(emptyArchive)
        await file.sync()
        const { size } = await file.stat()
        await renameDurable(half, archive)
        if (isOwn) await writeFile(this.#madeOf(node_id), (await identityOf(archive)) ?? '')
        return size
      } finally {
        await rm(half, { force: true })
      }
    })
  }

  /** Leaves the layer of a node as an archive alone, because its project is being closed. */
  async putAway(ids: IdRange, node: LayeredNode): Promise<void> {
    if (!(await isThere(this.placeOf(node.record.node_id)))) return
    await this.#makePlace(node)
    await this.gather(ids, node, node.directory)
    await this.remove(ids, node.record.node_id)
  }

  async remove(ids: IdRange | undefined, nodeId: string): Promise<void> {
    const names = await readdir(this.placeOf(nodeId)).catch(() => [])
    if (ids !== undefined)
      for (const name of names) if (name.startsWith('layer')) await removeInside(ids, join(this.placeOf(nodeId), name))
    await rm(this.placeOf(nodeId), { recursive: true, force: true })
  }

  /** The ids of nodes that have layers, and whose directories are gone. */
  async orphans(): Promise<string[]> {
    const found: string[] = []
    for (const id of await readdir(this.#directory).catch(() => [])) {
      const isGone = await readFile(join(this.placeOf(id), 'directory'), 'utf8')
        .then((directory) => stat(directory))
        // What cannot be read at present may be there.
        .then(() => false, isAbsence)
      if (isGone) found.push(id)
    }
    return found
  }

  /** Which archive the layer is the same as; without the file it is the same as none. */
  #madeOf(nodeId: string): string {
    return join(this.placeOf(nodeId), 'archive')
  }

  async #makePlace({ directory, record }: LayeredNode): Promise<void> {
    const place = this.placeOf(record.node_id)
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    await mkdir(place, { recursive: true, mode: 0o755 })
    await writeFile(join(place, 'directory'), directory)
  }

  async #unpack(ids: IdRange, { directory, record }: LayeredNode, signal: AbortSignal): Promise<void> {
    const { node_id, name } = record
    const layer = this.layerOf(node_id)
    await requireSpace(this.#directory, this.#minFreeMb())
    await makeOpen(`${layer}.new`)
    // Who may write to the directory may have put a link or a FIFO there meanwhile.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    await using file = await open(join(directory, archiveName), flags)
    const stats = await file.stat()
    if (!stats.isFile()) throw conflict(`The files of ${name} cannot be unpacked: ${archiveName} is not a file`)
    const { size } = stats
    try {
      if (size > emptyArchive.length)
        await runInside({
          ...{ ids, signal, disk: this.#directory, input: file.fd },
          places: [{ name: 'layer', path: `${layer}.new`, isWritable: true }],
          program: perl(unpackWords('/mnt/layer')),
          minFreeMb: this.#minFreeMb(),
          failure: `The files of ${name} (${archiveName}) cannot be unpacked`,
        })
      await rename(layer, `${layer}.old`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
      await rename(`${layer}.new`, layer)
    } finally {
      await removeInside(ids, `${layer}.new`)
      await removeInside(ids, `${layer}.old`)
    }
  }

  /** Removes what a service that was killed left half made. */
  async #tidy(ids: IdRange, { directory, record }: LayeredNode): Promise<void> {
    await rm(join(directory, `${archiveName}.part`), { force: true })
    const layer = this.layerOf(record.node_id)
    await removeInside(ids, `${layer}.new`)
    await removeInside(ids, `${layer}.old`)
  }
}

const isAbsence = (error: NodeJS.ErrnoException): boolean => error.code === 'ENOENT'

/** Throws when it cannot be known. */
const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (isAbsence(error)) return false
      throw error
    },
  )

/** Which file an archive is; another one of the same name differs. Undefined: there is none. */
async function identityOf(archive: string): Promise<string | undefined> {
  const stats = await lstat(archive, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (!isAbsence(error)) throw error
  })
  return stats?.isFile() === true ? [stats.ino, stats.size, stats.mtimeNs].join(' ') : undefined
}

/** The command of a script; 409 where containers cannot run. */
export function perl(words: readonly string[] | undefined): string[] {
  const found = findPerl()
  if (found === undefined || words === undefined) throw conflict('Containers need Perl, on a processor that they know')
  return [found, ...words]
}
