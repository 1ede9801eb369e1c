import { cloudOfHost } from './cloud/index.ts'
import { dynamipsOfHost } from './dynamips/index.ts'
import { hubOfHost } from './hub/index.ts'
import { hypervisorOfHost } from './hypervisor/index.ts'
import { iouOfHost } from './iou/index.ts'
import { machineEmulatorOfHost } from './machine-emulator/index.ts'
import { natOfHost } from './nat/index.ts'
import { pcOfHost } from './pc/index.ts'
import { switchOfHost } from './switch/index.ts'

/** How this host runs every kind of node, in the order of the settings and of the doctor. */
export const hostKinds = [
  pcOfHost,
  iouOfHost,
  hypervisorOfHost,
  machineEmulatorOfHost,
  dynamipsOfHost,
  switchOfHost,
  hubOfHost,
  cloudOfHost,
  natOfHost,
] as const
