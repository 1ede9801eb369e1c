import type { Fields } from '../labfile/text.ts'

/** A machine that stands for a system of another program: its fields of a machine-emulator, but for image and ports. */
export interface MachineModel {
  readonly fields: Fields
  /** The number in the name of its first data port; the adapter before it is for management. Default: 1. */
  readonly firstPort?: number
  /** The CD, or disk, from which it reads its configuration at the first boot. */
  readonly day0?: { readonly label: string; readonly file: string; readonly medium?: 'disk' }
  /** What its console shows when it is ready. */
  readonly ready?: string
  /** Why the image of the other program cannot be used, or only in part. */
  readonly warning?: string
}

const machine = (ram: number, cpus: number, adapter_type: string, more: Fields = {}): Fields => ({
  kind: 'machine-emulator',
  platform: 'x86_64',
  ram,
  ...(cpus > 1 && { cpus }),
  adapter_type,
  hda_disk_interface: 'virtio',
  options: '-machine graphics=off',
  ...more,
})

const virtio = 'virtio-net-pci'
const login = 'login:'
const cidata = { label: 'cidata', file: 'user-data' }
/** IOSv reads a disk with a FAT file system beside its own, with the same driver. */
const iosDisk = { label: 'disk0', file: 'ios_config.txt', medium: 'disk' } as const
const junosCd = { label: 'config', file: 'juniper.conf' }
const twoMachines =
  'it consists of two machines (control and forwarding plane) there, but of one here: build it as two nodes'

/**
 * The systems that containerlab and CML know, by a name of ours. Memory and processors are those that vrnetlab
 * (github.com/srl-labs/vrnetlab) gives them; CDs are those that their vendors document for the first boot.
 */
const machineModels = {
  sros: { fields: machine(6144, 2, virtio), ready: login },
  vmx: { fields: machine(4096, 1, virtio), firstPort: 0, ready: login, warning: twoMachines },
  vqfx: { fields: machine(1024, 1, 'e1000'), firstPort: 0, ready: login, warning: twoMachines },
  vsrx: { fields: machine(4096, 2, virtio), firstPort: 0, day0: junosCd, ready: login },
  vjunos: { fields: machine(5120, 4, virtio), firstPort: 0, ready: login },
  xrv: {
    fields: machine(3072, 1, 'e1000', { hda_disk_interface: 'ide' }),
    firstPort: 0,
    day0: { label: 'config', file: 'iosxr_config.txt' },
  },
  xrv9k: { fields: machine(16384, 4, virtio), firstPort: 0, day0: { label: 'config', file: 'iosxr_config.txt' } },
  csr: { fields: machine(4096, 1, virtio), firstPort: 2, day0: { label: 'config', file: 'iosxe_config.txt' } },
  cat9kv: { fields: machine(18432, 4, virtio), day0: { label: 'config', file: 'iosxe_config.txt' } },
  n9kv: {
    fields: machine(10240, 4, 'e1000', { hda_disk_interface: 'sata', firmware: 'uefi' }),
    day0: { label: 'config', file: 'nxos_config.txt' },
    ready: login,
  },
  ios: { fields: machine(512, 1, 'e1000'), firstPort: 0, day0: iosDisk, ready: 'Press RETURN' },
  asa: { fields: machine(2048, 1, 'e1000'), firstPort: 0, day0: { label: 'config', file: 'day0-config' } },
  ftd: { fields: machine(8192, 4, virtio), firstPort: 0, ready: login },
  veos: { fields: machine(2048, 1, 'e1000', { hda_disk_interface: 'ide' }), ready: login },
  panos: { fields: machine(6144, 2, virtio), ready: login },
  routeros: { fields: machine(256, 1, virtio), firstPort: 2, ready: 'Login:' },
  ocnos: { fields: machine(4096, 2, virtio), ready: login },
  aoscx: { fields: machine(4096, 2, virtio), ready: login },
  cumulus: { fields: machine(1024, 1, virtio), ready: login },
  sonic: { fields: machine(4096, 2, 'e1000'), firstPort: 0, ready: login },
  ftos: { fields: machine(4096, 2, virtio), ready: login },
  fortigate: { fields: machine(2048, 1, virtio), firstPort: 2, ready: login },
  checkpoint: { fields: machine(6144, 4, virtio), ready: login },
  vrp: { fields: machine(2048, 2, virtio), firstPort: 0 },
  saos: { fields: machine(4096, 2, virtio), ready: login },
  bigip: { fields: machine(8192, 4, virtio), ready: login },
  vyos: { fields: machine(512, 1, virtio), day0: cidata, ready: login },
  freebsd: { fields: machine(512, 1, virtio), day0: cidata, ready: login },
  openbsd: { fields: machine(512, 1, virtio), day0: cidata, ready: login },
  openwrt: { fields: machine(128, 1, virtio) },
  linux: { fields: machine(512, 1, virtio), day0: cidata, ready: login },
  placeholder: { fields: machine(512, 1, virtio) },
} as const satisfies Readonly<Record<string, MachineModel>>

export type MachineModelName = keyof typeof machineModels
export const machineModel = (name: MachineModelName): MachineModel => machineModels[name]
