import { type Static, Type } from '@sinclair/typebox'
import { HypervisorNode, vmSettings } from '../../../../src/kinds/hypervisor.ts'
import type { KindNode } from '../kind.ts'

const { vmname, driver, linked_clone, ram, remote_console } = HypervisorNode.properties

/** What the record of a VM's node keeps. */
export type HypervisorProperties = Static<typeof HypervisorProperties>
export const HypervisorProperties = Type.Object({
  ...vmSettings,
  vmname: Type.Union([vmname, Type.Literal('')], { default: '' }),
  /** By which the hypervisor knows it, whatever it is called by then. */
  vm_uuid: Type.String({ default: '' }),
  driver: Type.Union([driver], { default: 'libvirt' }),
  linked_clone: Type.Boolean({ ...linked_clone, default: false }),
  /** MB; 0: as it is defined. */
  ram: Type.Integer({ ...ram, default: 0 }),
  /** MB, as it was defined when that was last asked. */
  defined_ram: Type.Integer({ default: 0 }),
  remote_console: Type.Union([remote_console], { default: null }),
  /** Where its serial port is while it runs. */
  serial_port: Type.Union([Type.Integer(), Type.Null()], { default: null }),
  /** The UDP ports of its adapters while it runs, by their index. */
  wires: Type.Array(Type.Object({ guest_port: Type.Integer(), switch_port: Type.Integer() }), { default: [] }),
})

/** The settings that are kept as they are given. */
export const plainFields = Object.keys(vmSettings) as readonly (keyof typeof vmSettings)[]

/** A node of this kind. */
export type VmKindNode = KindNode<HypervisorProperties>
