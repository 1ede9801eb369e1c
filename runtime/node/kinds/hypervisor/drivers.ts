import { join } from 'node:path'
import type { HypervisorDriverName } from '../../../../src/kinds/hypervisor.ts'
import type { Log } from '../../log/log.ts'
import type { ApplianceDriver } from './driver.ts'
import { defaultUri } from './libvirt/address.ts'
import { LibvirtDriver } from './libvirt/libvirt.ts'
import { VirtualBoxDriver } from './virtualbox/virtualbox.ts'

export interface HypervisorSettings {
  readonly driver: HypervisorDriverName | 'auto'
  readonly libvirt_uri: string
  readonly vboxmanage_path: string
}

export type Drivers = Readonly<Record<HypervisorDriverName, ApplianceDriver>>

const nobody = '00000000-0000-0000-0000-000000000000'

/** The hypervisors of the host. Nothing is asked of one before it is used. */
export function createDrivers(settings: () => HypervisorSettings, runDirectory: string, log: Log): Drivers {
  return {
    libvirt: new LibvirtDriver({ uri: () => settings().libvirt_uri || defaultUri() }),
    virtualbox: new VirtualBoxDriver({
      path: () => settings().vboxmanage_path,
      directory: join(runDirectory, 'hypervisor'),
      log,
    }),
  }
}

/** What new nodes use: the one that is set, else libvirt where it answers, else VirtualBox; 409 with what to install. */
export async function defaultDriver(drivers: Drivers, { driver }: HypervisorSettings): Promise<HypervisorDriverName> {
  if (driver !== 'auto') return driver
  try {
    await drivers.libvirt.get(nobody)
    return 'libvirt'
  } catch (error) {
    const isThere = await drivers.virtualbox.get(nobody).then(
      () => true,
      () => false,
    )
    if (isThere) return 'virtualbox'
    throw error
  }
}
