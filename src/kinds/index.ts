import { dynamips } from './dynamips.ts'
import { hypervisor } from './hypervisor.ts'
import { iou } from './iou.ts'
import { machineEmulator } from './machine-emulator.ts'
import { pc } from './pc.ts'

/** Every kind of node, in the order of lists that clients see. */
export const kinds = [pc, iou, hypervisor, machineEmulator, dynamips] as const
