import { container } from '../../../../src/model/kinds/container.ts'
import { headOf } from '../../engine/storage/file-head.ts'
import type { NodeDriver } from '../node-driver.ts'
import type { ContainerProperties } from './properties.ts'

const settings = {}

/** How this host runs containers. */
export const containerDriver: NodeDriver<typeof container, typeof settings, ContainerProperties> = {
  descriptor: container,
  isImage: (file) => isArchive(file),
  doctor: async (_, signal) => [await (await import('./engine.ts')).engineCheck(signal)],
  open: async (host) => new (await import('./container.ts')).ContainerKind(host),
}

/** Whether a file is a tar archive (POSIX.1, pax(1)), or one that gzip has compressed (RFC 1952). */
async function isArchive(file: string): Promise<boolean> {
  const head = await headOf(file, 512)
  return head.subarray(257, 262).toString('latin1') === 'ustar' || (head[0] === 0x1f && head[1] === 0x8b)
}
