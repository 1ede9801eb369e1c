import type { MachineModelName } from './machines.ts'

/** The names of containerlab for systems that are machines, and those of earlier versions (`vr-`, and without vendor). */
const machineKinds: Readonly<Record<string, MachineModelName>> = {
  nokia_sros: 'sros',
  'vr-nokia_sros': 'sros',
  'vr-sros': 'sros',
  juniper_vmx: 'vmx',
  'vr-juniper_vmx': 'vmx',
  'vr-vmx': 'vmx',
  juniper_vqfx: 'vqfx',
  'vr-juniper_vqfx': 'vqfx',
  'vr-vqfx': 'vqfx',
  juniper_vsrx: 'vsrx',
  'vr-juniper_vsrx': 'vsrx',
  'vr-vsrx': 'vsrx',
  juniper_vjunosrouter: 'vjunos',
  juniper_vjunosswitch: 'vjunos',
  juniper_vjunosevolved: 'vjunos',
  'vr-vjunosswitch': 'vjunos',
  'vr-juniper_vjunosswitch': 'vjunos',
  cisco_xrv: 'xrv',
  'vr-cisco_xrv': 'xrv',
  'vr-xrv': 'xrv',
  cisco_xrv9k: 'xrv9k',
  'vr-cisco_xrv9k': 'xrv9k',
  'vr-xrv9k': 'xrv9k',
  cisco_csr1000v: 'csr',
  'vr-cisco_csr1000v': 'csr',
  'vr-cisco_csr': 'csr',
  'vr-csr': 'csr',
  cisco_c8000v: 'csr',
  'vr-cisco_c8000v': 'csr',
  'vr-c8000v': 'csr',
  cisco_cat9kv: 'cat9kv',
  'vr-cisco_cat9kv': 'cat9kv',
  cisco_n9kv: 'n9kv',
  'vr-cisco_n9kv': 'n9kv',
  'vr-n9kv': 'n9kv',
  'vr-nxos': 'n9kv',
  'vr-cisco_nxos': 'n9kv',
  cisco_vios: 'ios',
  cisco_viosl2: 'ios',
  'vr-vios': 'ios',
  cisco_asav: 'asa',
  cisco_ftdv: 'ftd',
  arista_veos: 'veos',
  'vr-arista_veos': 'veos',
  'vr-veos': 'veos',
  paloalto_panos: 'panos',
  'vr-paloalto_panos': 'panos',
  'vr-pan': 'panos',
  mikrotik_ros: 'routeros',
  'vr-mikrotik_ros': 'routeros',
  'vr-ros': 'routeros',
  ipinfusion_ocnos: 'ocnos',
  aruba_aoscx: 'aoscx',
  'vr-aoscx': 'aoscx',
  'vr-aruba_aoscx': 'aoscx',
  nvidia_cumulusvx: 'cumulus',
  'sonic-vm': 'sonic',
  dell_sonic: 'sonic',
  plvision_sonic: 'sonic',
  dell_ftosv: 'ftos',
  'vr-dell_ftosv': 'ftos',
  'vr-ftosv': 'ftos',
  fortinet_fortigate: 'fortigate',
  'vr-fortinet_fortigate': 'fortigate',
  checkpoint_cloudguard: 'checkpoint',
  huawei_vrp: 'vrp',
  ciena_saos: 'saos',
  f5_bigipve: 'bigip',
  'f5_bigip-ve': 'bigip',
  vyosnetworks_vyos: 'vyos',
  freebsd: 'freebsd',
  openbsd: 'openbsd',
  openwrt: 'openwrt',
  generic_vm: 'linux',
}

/** Systems that exist as containers alone. */
const containerKinds = new Set([
  ...['srl', 'nokia_srlinux', 'nokia_srsim', 'ceos', 'arista_ceos', 'crpd', 'juniper_crpd', 'juniper_csrx'],
  ...['juniper_cjunosevolved', 'xrd', 'cisco_xrd', 'cisco_xrd_vrouter', 'cisco_c8000', 'sonic-vs', 'cvx'],
  ...['6wind_vsr', 'keysight_ixia-c-one', 'spirent_stc', 'arrcus_arcos', 'fdio_vpp', 'rare', 'veesix_osvbng'],
  ...['k8s-kind', 'ext-container', 'border0', 'mysocketio', 'ostinato'],
])

/** What becomes of a node of containerlab; `placeholder`: it cannot run here. */
export type Becomes = 'linux' | 'switch' | 'host' | 'iou' | 'placeholder' | { readonly model: MachineModelName }

export function becomes(kind: string): Becomes {
  if (kind === 'linux' || kind === 'host') return kind
  if (kind === 'bridge' || kind === 'ovs-bridge') return 'switch'
  if (kind === 'cisco_iol') return 'iou'
  const model = machineKinds[kind]
  return model === undefined ? 'placeholder' : { model }
}

/** Whether a system is known to exist as a container alone. */
export const isContainerKind = (kind: string): boolean => containerKinds.has(kind)

/** Every kind that is known by name. */
export const knownKinds: readonly string[] = [
  ...['linux', 'host', 'bridge', 'ovs-bridge', 'cisco_iol'],
  ...Object.keys(machineKinds),
  ...containerKinds,
]
