import { hostOfAddress } from '../../compute/remote/address.ts'
import type { ApplianceVmRecord, ApplianceVmUpdate } from '../../model/appliance-vm.ts'
import { applianceId, type ComputeRecord } from '../../model/compute.ts'
import { credentials } from '../pool/record.ts'
import type { ApplianceAddress } from './appliance-engine.ts'

/** The settings with these changes; 400 for an address that no compute can have. */
export function merged(settings: ApplianceVmRecord, changes: ApplianceVmUpdate): ApplianceVmRecord {
  const { vmname, address, user, password, ...others } = changes
  const given = Object.fromEntries(Object.entries(others).filter(([, value]) => value != null))
  return {
    ...settings,
    ...given,
    vmname: vmname === undefined ? settings.vmname : vmname,
    address: address === undefined ? settings.address : address && hostOfAddress(address),
    ...credentials((user === undefined ? settings.user : user) ?? '', password ?? settings.password),
  }
}

/** Whether both settings mean the same for a running VM. */
export function isSameVm(a: ApplianceVmRecord, b: ApplianceVmRecord): boolean {
  const bare = ({ enable: _, when_exit: __, ...rest }: ApplianceVmRecord) => JSON.stringify(rest)
  return bare(a) === bare(b)
}

/** The record of the compute in the VM; without an address, only its known parts. */
export function computeRecord(
  { vmname, address, port, user, password }: ApplianceVmRecord,
  reached?: ApplianceAddress,
): ComputeRecord {
  return {
    compute_id: applianceId,
    name: `Appliance VM (${vmname})`,
    ...(reached ?? { protocol: 'http', host: address ?? '127.0.0.1', port, user, password }),
  }
}
