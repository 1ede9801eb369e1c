import { Type } from '@sinclair/typebox'
import { hypervisor } from '../../../../src/kinds/hypervisor.ts'
import type { HostKind } from '../host-kind.ts'
import type { HypervisorProperties } from './properties.ts'

const settings = {
  driver: Type.Union([Type.Literal('auto'), Type.Literal('libvirt'), Type.Literal('virtualbox')], {
    default: 'auto',
    description: 'The hypervisor of new hypervisor nodes; auto takes libvirt where it answers, else VirtualBox',
    reload: true,
  }),
  libvirt_uri: Type.String({
    default: '',
    description: 'qemu:///system or qemu:///session. Default: the system where this user may, else the session',
    reload: true,
  }),
  vboxmanage_path: Type.String({
    default: '',
    description: 'The VBoxManage program. Default: that in PATH',
    reload: true,
  }),
}

/** How this host runs VMs of its hypervisors. */
export const hypervisorOfHost: HostKind<typeof hypervisor, typeof settings, HypervisorProperties> = {
  descriptor: hypervisor,
  settings,
  doctor: async (settings, signal) => (await import('./doctor.ts')).hypervisorChecks(settings, signal),
  open: async (host) => new (await import('./hypervisor.ts')).HypervisorKind(host),
}
