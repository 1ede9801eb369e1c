import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ArchiveStore } from '../../../../src/labs/archives/archive-store.ts'
import { requireSpace, withDiskErrors } from '../../engine/storage/disk.ts'
import {
  makeDirectory,
  removeDurable,
  removeTemporaries,
  syncDirectory,
  temporaryOf,
} from '../../engine/storage/durable-file.ts'
import { receive } from '../../engine/storage/receive.ts'
import { contentOf } from '../../engine/storage/stored-file.ts'
import type { ZipArchivesOptions } from './zip-archives.ts'

/** Archives of closed projects, `{data}/archives/{id}.gns3project`. */
export class ArchiveFiles implements ArchiveStore {
  readonly #options: ZipArchivesOptions
  readonly #directory: string

  private constructor(options: ZipArchivesOptions) {
    this.#options = options
    this.#directory = options.records.pathOf('archives')
  }

  static async open(options: ZipArchivesOptions): Promise<ArchiveFiles> {
    const files = new ArchiveFiles(options)
    await makeDirectory(files.#directory)
    await removeTemporaries(files.#directory)
    return files
  }

  async write(projectId: string, content: ReadableStream<Uint8Array>): Promise<void> {
    const { minFreeMb, bodyTimeoutMs } = this.#options
    await requireSpace(this.#directory, minFreeMb())
    const path = this.#pathOf(projectId)
    const temporary = temporaryOf(path)
    const limits = { directory: this.#directory, minFreeMb, bodyTimeoutMs, fate: 'the earlier archive stays' }
    await withDiskErrors('The archive', async () => {
      try {
        {
          await using handle = await open(temporary, 'wx', 0o600)
          await receive(content, handle, limits)
        }
        await rename(temporary, path)
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
      await syncDirectory(this.#directory)
    })
  }

  async read(projectId: string): Promise<ReadableStream<Uint8Array> | undefined> {
    const handle = await open(this.#pathOf(projectId)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    return handle && contentOf(handle, (await handle.stat()).size)
  }

  async remove(projectId: string): Promise<void> {
    await removeDurable(this.#pathOf(projectId))
  }

  #pathOf(projectId: string): string {
    return join(this.#directory, `${projectId}.gns3project`)
  }
}
