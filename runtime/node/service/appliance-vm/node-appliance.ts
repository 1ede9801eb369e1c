import { ApplianceVmService } from '../../../../src/fleet/appliance-vm/appliance-vm.ts'
import { RemoteEngine } from '../../../../src/fleet/appliance-vm/remote-engine.ts'
import type { Fleet } from '../../../../src/fleet/pool/fleet.ts'
import type { Drivers } from '../../drivers/hypervisor/drivers.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'
import { DriverEngine } from './driver-engine.ts'
import { ApplianceFile } from './settings-file.ts'

interface NodeApplianceOptions {
  readonly records: ServiceRecords
  readonly fleet: Fleet
  /** The drivers of the nodes, because VirtualBox takes one command at a time. */
  readonly drivers: Drivers
}

/** Opens the appliance VM; it is not started. */
export function openAppliance({ records, fleet, drivers }: NodeApplianceOptions): Promise<ApplianceVmService> {
  const store = new ApplianceFile(records)
  const libvirt = new DriverEngine(drivers.libvirt, {
    name: 'libvirt',
    description: 'A VM of libvirt (QEMU/KVM) on this host. Its definition stays as it is.',
    support_headless: false,
    support_ram: true,
  })
  const virtualbox = new DriverEngine(drivers.virtualbox, {
    name: 'VirtualBox',
    description:
      'A VM of VirtualBox on this host, with a NAT and a host-only adapter. <code>ram</code> and <code>vcpus</code> are set in it.',
    support_headless: true,
    support_ram: true,
  })
  return ApplianceVmService.open({ fleet, store, engines: { libvirt, virtualbox, remote: new RemoteEngine(fleet) } })
}
