import { Type } from '@sinclair/typebox'
import { hypervisor } from '../../../../src/model/kinds/hypervisor.ts'
import type { NodeDriver } from '../node-driver.ts'
import type { HypervisorProperties } from './properties.ts'

const settings = {
  driver: Type.Union([Type.Literal('auto'), Type.Literal('libvirt'), Type.Literal('virtualbox')], {
    default: 'auto',
    description: 'Hypervisor for new hypervisor nodes; auto uses libvirt if it responds, otherwise VirtualBox',
    reload: true,
  }),
  libvirt_uri: Type.String({
    default: '',
    description: 'qemu:///system or qemu:///session. Default: system if this user has access to it, otherwise session',
    reload: true,
  }),
  vboxmanage_path: Type.String({
    default: '',
    description: 'Path of the VBoxManage program. Default: the one in PATH',
    reload: true,
  }),
}

/** How this host runs VMs of its hypervisors. */
export const hypervisorDriver: NodeDriver<typeof hypervisor, typeof settings, HypervisorProperties> = {
  descriptor: hypervisor,
  settings,
  doctor: async (settings, signal) => (await import('./doctor.ts')).hypervisorChecks(settings, signal),
  open: async (host) => new (await import('./hypervisor.ts')).HypervisorKind(host),
}
