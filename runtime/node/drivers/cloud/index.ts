import { cloud } from '../../../../src/model/kinds/cloud.ts'
import type { HostKind } from '../host-kind.ts'
import type { CloudProperties } from './cloud.ts'

/** How this host runs clouds. */
export const cloudDriver: HostKind<typeof cloud, Record<never, never>, CloudProperties> = {
  descriptor: cloud,
  open: async (host) => new (await import('./cloud.ts')).CloudKind(host),
}
