import { hub } from '../../../../src/model/kinds/hub.ts'
import type { NodeDriver } from '../node-driver.ts'
import type { HubProperties } from './hub.ts'

/** How this host runs hubs. */
export const hubDriver: NodeDriver<typeof hub, Record<never, never>, HubProperties> = {
  descriptor: hub,
  open: async (host) => new (await import('./hub.ts')).HubKind(host),
}
