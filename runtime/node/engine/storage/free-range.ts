import type { FileHandle } from 'node:fs/promises'
import { type Libc, linux, loadLibc } from '../../os/system/libc.ts'

let libc: Libc | null | undefined

/**
 * Frees the memory and the disk space of a part of a file, which has zeros then (fallocate(2)). Does nothing where that is not
 * possible. It waits for the system, as the number of a file that is closed meanwhile may be that of another one.
 */
export function freeRange({ fd }: FileHandle, first: number, bytes: number): void {
  if (fd < 0) return
  if (libc === undefined) libc = loaded()
  libc?.fallocate(fd, linux.FALLOC_FL_PUNCH_HOLE | linux.FALLOC_FL_KEEP_SIZE, first, bytes)
}

function loaded(): Libc | null {
  try {
    return loadLibc()
  } catch {
    return null
  }
}
