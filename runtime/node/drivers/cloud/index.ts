import { cloud } from '../../../../src/model/kinds/cloud.ts'
import type { NodeDriver } from '../node-driver.ts'
import type { CloudProperties } from './cloud.ts'

/** How this host runs clouds. */
export const cloudDriver: NodeDriver<typeof cloud, Record<never, never>, CloudProperties> = {
  descriptor: cloud,
  open: async (host) => new (await import('./cloud.ts')).CloudKind(host),
}
