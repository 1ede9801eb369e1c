import { cloud } from './cloud.ts'
import { container } from './container.ts'
import { dynamips } from './dynamips.ts'
import { hub } from './hub.ts'
import { hypervisor } from './hypervisor.ts'
import { iou } from './iou.ts'
import { machineEmulator } from './machine-emulator.ts'
import { nat } from './nat.ts'
import { pc } from './pc.ts'
import { ethernetSwitch } from './switch.ts'

/** Every kind of node, in the order of lists that clients see. */
export const kinds = [
  pc,
  iou,
  hypervisor,
  machineEmulator,
  dynamips,
  container,
  ethernetSwitch,
  hub,
  cloud,
  nat,
] as const
