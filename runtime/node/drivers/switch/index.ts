import { ethernetSwitch } from '../../../../src/model/kinds/switch.ts'
import type { HostKind } from '../host-kind.ts'
import type { SwitchProperties } from './switch.ts'

/** How this host runs switches. */
export const switchDriver: HostKind<typeof ethernetSwitch, Record<never, never>, SwitchProperties> = {
  descriptor: ethernetSwitch,
  open: async (host) => new (await import('./switch.ts')).SwitchKind(host),
}
