import { type Static, Type } from '@sinclair/typebox'
import { HypervisorNode, vmSettings } from '../../../../src/model/kinds/hypervisor.ts'
import type { KindNode } from '../../engine/nodes/kind.ts'

const { vmname, driver, linked_clone, ram, remote_console } = HypervisorNode.properties

/** The properties in the record of a node. */
export type HypervisorProperties = Static<typeof HypervisorProperties>
export const HypervisorProperties = Type.Object({
  ...vmSettings,
  vmname: Type.Union([vmname, Type.Literal('')], { default: '' }),
  vm_uuid: Type.String({ default: '' }),
  driver: Type.Union([driver], { default: 'libvirt' }),
  linked_clone: Type.Boolean({ ...linked_clone, default: false }),
  /** MB; 0: as the VM is defined. */
  ram: Type.Integer({ ...ram, default: 0 }),
  /** MB; the memory in the definition when it was last read. */
  defined_ram: Type.Integer({ default: 0 }),
  remote_console: Type.Union([remote_console], { default: null }),
  /** TCP port of the serial port while the VM runs. */
  serial_port: Type.Union([Type.Integer(), Type.Null()], { default: null }),
  /** UDP ports of the adapters while the VM runs, by index. */
  wires: Type.Array(Type.Object({ guest_port: Type.Integer(), switch_port: Type.Integer() }), { default: [] }),
})

/** Settings that are stored without a change. */
export const plainFields = Object.keys(vmSettings) as readonly (keyof typeof vmSettings)[]

export type VmKindNode = KindNode<HypervisorProperties>
