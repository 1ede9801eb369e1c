import type { NodeKindName } from '../../../src/model/kinds/node.ts'
import { cloudDriver } from './cloud/index.ts'
import { containerDriver } from './container/index.ts'
import { dynamipsDriver } from './dynamips/index.ts'
import { hubDriver } from './hub/index.ts'
import { hypervisorDriver } from './hypervisor/index.ts'
import { iouDriver } from './iou/index.ts'
import { natDriver } from './nat/index.ts'
import type { NodeDriver } from './node-driver.ts'
import { pcDriver } from './pc/index.ts'
import { machineEmulatorDriver } from './qemu/index.ts'
import { switchDriver } from './switch/index.ts'

/** The driver of each kind of node, in the order of the settings and of the doctor. */
export const nodeDrivers = [
  pcDriver,
  iouDriver,
  hypervisorDriver,
  machineEmulatorDriver,
  dynamipsDriver,
  containerDriver,
  switchDriver,
  hubDriver,
  cloudDriver,
  natDriver,
] as const

/** See `NodeDriver.isImage`. */
export function isImageOf(kind: NodeKindName, file: string, name: string): boolean | Promise<boolean> {
  const { isImage = () => true }: Partial<NodeDriver> =
    nodeDrivers.find(({ descriptor }) => descriptor.name === kind) ?? {}
  return isImage(file, name)
}
