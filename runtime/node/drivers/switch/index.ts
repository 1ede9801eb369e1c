import { ethernetSwitch } from '../../../../src/model/kinds/switch.ts'
import type { NodeDriver } from '../node-driver.ts'
import type { SwitchProperties } from './switch.ts'

/** How this host runs switches. */
export const switchDriver: NodeDriver<typeof ethernetSwitch, Record<never, never>, SwitchProperties> = {
  descriptor: ethernetSwitch,
  open: async (host) => new (await import('./switch.ts')).SwitchKind(host),
}
