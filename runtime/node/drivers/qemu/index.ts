import { Type } from '@sinclair/typebox'
import { machineEmulator } from '../../../../src/model/kinds/machine-emulator.ts'
import type { NodeDriver } from '../node-driver.ts'
import type { MachineProperties } from './properties.ts'

const settings = {
  acceleration: Type.Union([Type.Literal('auto'), Type.Literal('kvm'), Type.Literal('tcg')], {
    default: 'auto',
    description:
      'How processors are emulated; auto uses KVM if a guest boots under it, kvm refuses to start without /dev/kvm, tcg never uses KVM',
    reload: true,
  }),
}

/** How this host runs machines. */
export const machineEmulatorDriver: NodeDriver<typeof machineEmulator, typeof settings, MachineProperties> = {
  descriptor: machineEmulator,
  settings,
  isImage: (_, name) => !/\.(bin|image|md5sum)$/i.test(name),
  doctor: async (_, signal) => (await import('./doctor.ts')).machineChecks(signal),
  open: async (host) => new (await import('./machine-emulator.ts')).MachineEmulatorKind(host),
}
