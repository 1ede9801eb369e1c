import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { webStream } from '../web-stream.ts'
import { translated } from './disk.ts'

/** Opens a regular file whose path was resolved; the error of `missing` for everything else. */
export async function openRegular(file: string, missing: () => Error): Promise<FileHandle> {
  // The path was resolved: a link there now was put there since. A FIFO must not block.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await translated('path', () =>
    open(file, flags).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'ENXIO') throw missing()
      throw error
    }),
  )
  const stats = await handle.stat()
  if (stats.isFile()) return handle
  await handle.close()
  throw missing()
}

/** `size` bytes of an open file from `first` on, and no more should it grow meanwhile; the file is closed with the stream. */
export function contentOf(handle: FileHandle, size: number, first = 0): ReadableStream<Uint8Array> {
  if (size === 0) return emptyStream(handle)
  return webStream(handle.createReadStream({ start: first, end: first + size - 1 }))
}

function emptyStream(handle: FileHandle): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      await handle.close()
      controller.close()
    },
  })
}
