import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** The first bytes of a file, fewer where it is shorter; none when it cannot be opened. */
export async function headOf(path: string, bytes: number): Promise<Buffer> {
  // A FIFO that took the place of the file must not block.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined)
  const head = Buffer.alloc(bytes)
  const { bytesRead = 0 } = (await file?.read(head, 0, bytes, 0)) ?? {}
  return head.subarray(0, bytesRead)
}

/** Whether `fits` accepts the first 64 bytes of a file. */
export const begins = async (path: string, fits: (head: Buffer) => boolean): Promise<boolean> =>
  fits(await headOf(path, 64))
