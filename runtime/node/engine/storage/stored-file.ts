import { constants } from 'node:fs'
import { type FileHandle, open, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { bufferBytes, lend } from './buffers.ts'
import { withDiskErrors } from './disk.ts'

/** Opens a regular file at a resolved path; throws the error of `missing` for everything else. */
export async function openRegular(file: string, missing: () => Error): Promise<FileHandle> {
  // The path was resolved, so a link there is new and must not be followed. A FIFO must not block.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await withDiskErrors('path', () =>
    open(file, flags).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'ENXIO') throw missing()
      throw error
    }),
  )
  const stats = await handle.stat()
  if (stats.isFile() && (await isStillAt(handle, file))) return handle
  await handle.close()
  throw missing()
}

/** An open directory at a resolved path. */
export interface OpenDirectory extends AsyncDisposable {
  /** The path of a file in the open directory, even if the directory was renamed or replaced. */
  path(name: string): string
}

/** Opens a directory at a resolved path; throws the error of `missing` for everything else. */
export async function openDirectory(directory: string, missing: () => Error): Promise<OpenDirectory> {
  // Only Linux has paths below a descriptor (/proc/self/fd).
  if (process.platform !== 'linux') return { path: (name) => join(directory, name), async [Symbol.asyncDispose]() {} }
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOTDIR' || error.code === 'ELOOP' ? missing() : error
    },
  )
  if (await isStillAt(handle, directory))
    return { path: (name) => `/proc/self/fd/${handle.fd}/${name}`, [Symbol.asyncDispose]: () => handle.close() }
  await handle.close()
  throw missing()
}

/**
 * Whether the open file is still the target of the resolved path. A program in a directory of the path may have put a link there
 * that leads out of the project.
 */
async function isStillAt({ fd }: FileHandle, path: string): Promise<boolean> {
  const there = await readlink(`/proc/self/fd/${fd}`).catch(() => path)
  return there === path || there === `${path} (deleted)`
}

/** The next bytes of a file from the offset `first` on, at most up to `end`, in a lent buffer; fewer than one at the end of the file. */
export async function readPiece(handle: FileHandle, first: number, end: number): Promise<Uint8Array> {
  const buffer = lend(Math.min(bufferBytes, end - first))
  const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength, first)
  return buffer.subarray(0, bytesRead)
}

/** A stream of `size` bytes of an open file from the offset `first`, even if the file grows. The file is closed with the stream. */
export function contentOf(handle: FileHandle, size: number, first = 0): ReadableStream<Uint8Array> {
  let at = first
  const end = first + size
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const piece = at < end ? await readPiece(handle, at, end) : undefined
          at += piece?.byteLength ?? 0
          if (piece !== undefined && piece.byteLength > 0) return controller.enqueue(piece)
          await handle.close()
          controller.close()
        } catch (error) {
          await handle.close()
          throw error
        }
      },
      cancel: () => handle.close(),
    },
    { highWaterMark: 0 },
  )
}
