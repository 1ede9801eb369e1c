import { open } from 'node:fs/promises'

/** Whether `fits` accepts the first 64 bytes of a file. */
export async function begins(path: string, fits: (head: Buffer) => boolean): Promise<boolean> {
  await using file = await open(path, 'r').catch(() => undefined)
  const head = Buffer.alloc(64)
  const { bytesRead = 0 } = (await file?.read(head, 0, head.length, 0)) ?? {}
  return fits(head.subarray(0, bytesRead))
}
