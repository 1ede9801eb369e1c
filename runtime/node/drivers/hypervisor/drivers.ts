import { join } from 'node:path'
import type { HypervisorDriverName } from '../../../../src/model/kinds/hypervisor.ts'
import type { Log } from '../../os/log/log.ts'
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

const unknownVm = '00000000-0000-0000-0000-000000000000'

/** The drivers of this host. They connect at the first use. */
export const createDrivers = (settings: () => HypervisorSettings, runDirectory: string, log: Log): Drivers => ({
  libvirt: new LibvirtDriver({ uri: () => settings().libvirt_uri || defaultUri() }),
  virtualbox: new VirtualBoxDriver({
    path: () => settings().vboxmanage_path,
    directory: join(runDirectory, 'hypervisor'),
    log,
  }),
})

/** The driver of new nodes: the setting, else libvirt if it answers, else VirtualBox. 409 with the package to install. */
export async function defaultDriver(drivers: Drivers, { driver }: HypervisorSettings): Promise<HypervisorDriverName> {
  if (driver !== 'auto') return driver
  try {
    await drivers.libvirt.get(unknownVm)
    return 'libvirt'
  } catch (error) {
    await drivers.virtualbox.get(unknownVm).catch(() => {
      throw error
    })
    return 'virtualbox'
  }
}
