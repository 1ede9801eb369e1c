import { isGzip, isTar } from '../../../../src/lib/archive-heads.ts'
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

/** Whether a file is a tar archive, or one that gzip has compressed. */
async function isArchive(file: string): Promise<boolean> {
  const head = await headOf(file, 512)
  return isTar(head) || isGzip(head)
}
