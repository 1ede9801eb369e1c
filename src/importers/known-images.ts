import { isGzip, isTar } from '../lib/archive-heads.ts'
import { type DynamipsPlatform, defaultRam } from '../model/kinds/dynamips-hardware.ts'
import { imageNeeds } from '../model/kinds/image-names.ts'

/** Settings for a node type (a template), as far as an image tells them: the user may change each. */
export interface SuggestedType {
  /** The kind whose nodes start from the image. */
  readonly kind: 'machine-emulator' | 'dynamips' | 'iou' | 'container'
  readonly name: string
  readonly category: 'guest' | 'router' | 'switch' | 'firewall'
  readonly symbol: string
  /** Settings of the kind; the image is among them. */
  readonly settings: Readonly<Record<string, string | number | readonly string[]>>
  /** The name of the image says nothing of its machine: the settings are the defaults. */
  readonly isUnknown?: true
}

/** Bytes of the beginning of a file that tell what it is; those of a CD-ROM image are the furthest (ECMA-119, 7.1.1). */
export const headBytes = 32_774

type Row = readonly [name: RegExp, type: Pick<SuggestedType, 'name' | 'category'>, settings: SuggestedType['settings']]

const e1000 = { adapter_type: 'e1000' } as const
const virtio = { hda_disk_interface: 'virtio', adapter_type: 'virtio-net-pci' } as const
const [router, firewall, guest] = ['router', 'firewall', 'guest'] as const

/** Machines by the names under which their vendors give out disks, and what the vendors ask for. The first that fits counts. */
const machines: readonly Row[] = [
  [
    /vios[_-]?l2/,
    { name: 'IOSvL2', category: 'switch' },
    { ram: 768, adapters: 16, hda_disk_interface: 'virtio', ...e1000 },
  ],
  [/^vios/, { name: 'IOSv', category: router }, { ram: 512, adapters: 4, hda_disk_interface: 'virtio', ...e1000 }],
  [/csr1000v/, { name: 'CSR1000v', category: router }, { ram: 4096, adapters: 4, hda_disk_interface: 'virtio' }],
  [/c8000v/, { name: 'C8000v', category: router }, { ram: 4096, adapters: 4, hda_disk_interface: 'virtio' }],
  [/xrv9k/, { name: 'XRv9000', category: router }, { ram: 16384, cpus: 4, adapters: 5, ...e1000 }],
  [/iosxrv/, { name: 'XRv', category: router }, { ram: 3072, adapters: 9, ...e1000 }],
  [
    /nexus9[53]00v|nxosv/,
    { name: 'NX-OSv', category: 'switch' },
    { ram: 12288, cpus: 2, adapters: 10, firmware: 'uefi' },
  ],
  [/asav/, { name: 'ASAv', category: firewall }, { ram: 2048, adapters: 8, hda_disk_interface: 'virtio', ...e1000 }],
  [/veos/, { name: 'vEOS', category: 'switch' }, { ram: 2048, adapters: 13, ...e1000 }],
  [/vqfx.*(pfe|cosim)/, { name: 'vQFX-PFE', category: 'switch' }, { ram: 2048, adapters: 2, ...e1000 }],
  [/vqfx/, { name: 'vQFX', category: 'switch' }, { ram: 1024, adapters: 12, ...e1000 }],
  [/vsrx/, { name: 'vSRX', category: firewall }, { ram: 4096, cpus: 2, adapters: 8, ...virtio }],
  [/vjunos.*switch/, { name: 'vJunos-switch', category: 'switch' }, { ram: 5120, cpus: 4, adapters: 11, ...virtio }],
  [/vjunos/, { name: 'vJunos', category: router }, { ram: 5120, cpus: 4, adapters: 11, ...virtio }],
  [/^chr-/, { name: 'RouterOS', category: router }, { ram: 256, adapters: 8, ...virtio }],
  [/^frr.*\.qcow2$/, { name: 'FRR', category: router }, { ram: 256, adapters: 4, ...virtio }],
  [/vyos/, { name: 'VyOS', category: router }, { ram: 1024, adapters: 4, ...virtio }],
  [/openwrt/, { name: 'OpenWrt', category: router }, { ram: 256, adapters: 4, ...virtio }],
  [/fortios|fortigate|fgt[_-]vm/, { name: 'FortiGate', category: firewall }, { ram: 2048, adapters: 10, ...virtio }],
  [/pfsense/, { name: 'pfSense', category: firewall }, { ram: 2048, adapters: 4, ...virtio }],
  [/opnsense/, { name: 'OPNsense', category: firewall }, { ram: 2048, adapters: 4, ...virtio }],
  [
    /sonic-vs/,
    { name: 'SONiC', category: 'switch' },
    { ram: 4096, cpus: 2, adapters: 10, hda_disk_interface: 'virtio' },
  ],
  [/cumulus/, { name: 'Cumulus', category: 'switch' }, { ram: 1024, adapters: 7, ...virtio }],
  [/cirros/, { name: 'CirrOS', category: guest }, { ram: 128, ...virtio }],
  [/alpine/, { name: 'Alpine', category: guest }, { ram: 256, ...virtio }],
  [/debian|ubuntu|fedora|centos|rocky|alma/, { name: 'Linux', category: guest }, { ram: 1024, ...virtio }],
]

/** The routers of dynamips, by the names of their images. */
const platforms: readonly (readonly [name: RegExp, platform: DynamipsPlatform])[] = [
  [/^c1[67]\d\d|^c1700/, 'c1700'],
  [/^c26(?!91)/, 'c2600'],
  [/^c2691/, 'c2691'],
  [/^c36/, 'c3600'],
  [/^c3725/, 'c3725'],
  [/^c3745/, 'c3745'],
  [/^c7[25]00/, 'c7200'],
]

/**
 * The node type that a file suggests by its name and its first bytes (`headBytes` of them are enough); undefined when nodes of no kind
 * start from such a file. ELF(5), QEMU docs/interop/qcow2.rst, ECMA-119.
 */
export function suggestedType(file: string, head: Uint8Array): SuggestedType | undefined {
  // A program: big-endian for a router of dynamips, little-endian for the host itself (IOU).
  if (startsWith(head, [0x7f, 0x45, 0x4c, 0x46])) return head[5] === 2 ? dynamipsType(file) : iouType(file)
  if (isArchive(file, head)) return containerType(file)
  const isCd = text(head, 32_769, 5) === 'CD001'
  const isDisk = diskMagic.some((magic) => text(head, 0, magic.length) === magic) || isBootSector(head)
  return isCd || isDisk || /\.(qcow2?|vmdk|vdi|vhdx?|img|raw|iso)$/i.test(file) ? machineType(file, isCd) : undefined
}

/** The node type that an image suggests by its name alone, where the kind of its nodes is known. */
export function suggestedFor(kind: string, path: string): SuggestedType | undefined {
  switch (kind) {
    case 'machine-emulator':
      return machineType(path, /\.iso$/i.test(path))
    case 'dynamips':
      return dynamipsType(path)
    case 'iou':
      return iouType(path)
    case 'container':
      return containerType(path)
    default:
      return undefined
  }
}

const nameIn = (path: string): string => (path.split('/').at(-1) ?? path).toLowerCase()

function machineType(path: string, isCd: boolean): SuggestedType {
  const name = nameIn(path)
  const known = machines.find(([pattern]) => pattern.test(name))
  const unknown: Row = [/^/, { name: titleOf(path.split('/').at(-1) ?? path), category: guest }, {}]
  const [, type, settings] = known ?? unknown
  const symbol = type.category === 'guest' ? 'machine' : type.category
  const image = isCd ? { cdrom_image: path, boot_priority: 'd' } : { hda_disk_image: path }
  const of = { kind: 'machine-emulator', ...type, symbol, settings: { ...settings, ...image } } as const
  return known === undefined ? { ...of, isUnknown: true } : of
}

function iouType(path: string): SuggestedType {
  const isSwitch = nameIn(path).includes('l2')
  const category = isSwitch ? 'switch' : router
  const settings = { path, ethernet_adapters: isSwitch ? 4 : 2, serial_adapters: isSwitch ? 0 : 2 }
  return { kind: 'iou', name: isSwitch ? 'IOU-L2' : 'IOU-L3', category, symbol: category, settings }
}

function dynamipsType(path: string): SuggestedType {
  const name = nameIn(path)
  const [, platform] = platforms.find(([pattern]) => pattern.test(name)) ?? [undefined, 'c7200' as const]
  const ram = defaultRam[platform]
  return {
    kind: 'dynamips',
    name: platform,
    category: router,
    symbol: 'router',
    settings: { image: path, platform, ram },
  }
}

/** A container by its image; FRR is a router. */
function containerType(path: string): SuggestedType {
  const { symbol, capabilities } = imageNeeds(nameIn(path))
  if (symbol === 'router')
    return {
      kind: 'container',
      name: 'FRR',
      category: router,
      symbol,
      settings: { image: path, adapters: 4, capabilities },
    }
  const name = titleOf((path.split('/').at(-1) ?? path).replace(/\.(tar|tgz|tar\.gz)$/i, ''))
  return { kind: 'container', name, category: guest, symbol: 'server', settings: { image: path } }
}

/** Whether it is an archive, as `docker save` makes it; what else is compressed is not told by its bytes. */
const isArchive = (file: string, head: Uint8Array): boolean =>
  isTar(head) || (isGzip(head) && /\.(tgz|tar\.gz)$/i.test(file))

/** qcow2, VMDK, VHDX, VDI; a VHD has its magic at its end. */
const diskMagic = ['QFI\xfb', 'KDMV', '# Disk DescriptorFile', 'vhdxfile', '<<< ']

/** Whether it is a raw disk with a boot sector. */
const isBootSector = (head: Uint8Array): boolean => head[510] === 0x55 && head[511] === 0xaa

const startsWith = (head: Uint8Array, bytes: readonly number[]): boolean => bytes.every((byte, at) => head[at] === byte)

const text = (head: Uint8Array, at: number, length: number): string =>
  String.fromCharCode(...head.subarray(at, at + length))

/** `my-router_1.2.qcow2` -> `my-router`: without what versions and formats add. */
const titleOf = (file: string): string =>
  file.replace(/\.[a-z0-9]+$/i, '').replace(/[-_. ]+(v?\d[\w.-]*|amd64|x86[_-]64|i386|disk\d?)*$/i, '') || file
