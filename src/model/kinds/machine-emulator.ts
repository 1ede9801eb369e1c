import { type Static, Type } from '@sinclair/typebox'
import { oneLine } from '../../lib/text/one-line.ts'
import { closedSchema, maybe, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import { FoundProgram } from '../schema/program.ts'
import { machineHostAccess } from './host-access.ts'
import { inputsOf } from './inputs.ts'
import { action, adaptersOfOnePort, computeAction, gns3Kind, kind, unionBy } from './kind.ts'
import { type AddressSettings, addressIssue, macOfAdapter, macText } from './mac-addresses.ts'
import { v1Of } from './v1.ts'

/** Platforms by their names in `qemu-system-{platform}`. "" and "null": the platform of `qemu_path`. */
export const platforms = [
  ...['aarch64', 'alpha', 'arm', 'cris', 'i386', 'lm32', 'm68k', 'microblaze', 'microblazeel', 'mips', 'mips64'],
  ...['mips64el', 'mipsel', 'moxie', 'or32', 'ppc', 'ppc64', 'ppcemb', 's390x', 'sh4', 'sh4eb', 'sparc', 'sparc64'],
  ...['tricore', 'unicore32', 'x86_64', 'xtensa', 'xtensaeb', 'riscv32', 'riscv64', 'loongarch64', 'null', ''],
] as const

const choice = <const V extends string>(values: readonly V[], description: string, byDefault?: V) =>
  oneOf(values, { description, ...(byDefault !== undefined && { default: byDefault }) })

/** Largest number of adapters of a machine: eight PCI bridges have slots for these. */
export const maxAdapters = 275

const MacAddress = Type.String({ ...macText, description: 'MAC address' })
/** Model names become part of a QEMU option, in which commas separate values. */
const modelName = {
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$',
  maxLength: 64,
  description: 'Device model as the emulator names it, such as e1000 or virtio-net-pci',
  expects: 'the name of a device model, such as e1000',
}
/** A path or a name, without control characters. */
const image = (description: string) =>
  Type.String({
    maxLength: 4096,
    default: '',
    pattern: oneLine,
    description: `${description}; a name in the images directory or a path, empty for none`,
    expects: 'the name or path of an image, in one line',
    holds: 'image',
  })
const md5 = (of: string) =>
  nullable(Type.String({ maxLength: 64, description: `MD5 of ${of}, computed; a sent value is ignored` }))

/** Interfaces of disks. `none`: the disk is not attached; a device in `options` uses it (`drive=pb-hda`). */
const diskInterfaces = ['ide', 'sata', 'nvme', 'scsi', 'sd', 'mtd', 'floppy', 'pflash', 'virtio', 'none'] as const
export type DiskInterface = (typeof diskInterfaces)[number]

/** The disks of a machine, in the order of their indices. */
export const diskSlots = ['hda', 'hdb', 'hdc', 'hdd'] as const
export type DiskSlot = (typeof diskSlots)[number]

const disk = (slot: DiskSlot) => ({
  image: image(`Disk ${slot}`),
  md5: md5(`the image of ${slot}`),
  interface: choice(diskInterfaces, `How disk ${slot} is attached`, 'ide'),
})
const [hda, hdb, hdc, hdd] = [disk('hda'), disk('hdb'), disk('hdc'), disk('hdd')]

/** The settings of one adapter that differ from the others. */
export type CustomAdapter = Static<typeof CustomAdapter>
export const CustomAdapter = Type.Object(
  {
    adapter_number: Type.Integer({ minimum: 0, maximum: maxAdapters - 1 }),
    port_name: maybe(Type.String({ maxLength: 64, description: 'Name of the port, for display' })),
    adapter_type: maybe(Type.String(modelName)),
    mac_address: maybe(MacAddress),
  },
  { additionalProperties: false, description: 'The settings of one adapter that differ from the others' },
)

/** The settings of a machine, with their defaults: the members of its record. */
export const machineSettings = {
  usage: Type.String({ maxLength: 65536, default: '', description: 'Notes on how to use the machine' }),
  linked_clone: Type.Boolean({
    default: true,
    description: 'Whether the machine writes to overlays, so that its disk images stay unchanged',
  }),
  console_type: choice(['telnet', 'vnc', 'spice', 'spice+agent', 'none'], 'The type of the console', 'telnet'),
  hda_disk_image: hda.image,
  hdb_disk_image: hdb.image,
  hdc_disk_image: hdc.image,
  hdd_disk_image: hdd.image,
  hda_disk_interface: hda.interface,
  hdb_disk_interface: hdb.interface,
  hdc_disk_interface: hdc.interface,
  hdd_disk_interface: hdd.interface,
  cdrom_image: image(
    'CD-ROM image, `./name` for one in the directory of the node; a change also applies to a running machine',
  ),
  bios_image: image('Firmware, BIOS or UEFI'),
  firmware: choice(
    ['bios', 'uefi'],
    'The firmware where no image of one is given: the BIOS of the emulator, or a UEFI of the host',
    'bios',
  ),
  initrd: image('Initial RAM disk'),
  kernel_image: image('Kernel that the emulator boots directly'),
  kernel_command_line: Type.String({
    maxLength: 4096,
    pattern: '^[^\\u0000]*$',
    default: '',
    description: 'Command line of the kernel',
    expects: 'a string of at most 4096 characters',
  }),
  boot_priority: choice(
    ['c', 'd', 'n', 'cn', 'cd', 'dn', 'dc', 'nc', 'nd'],
    'c: disk, d: CD-ROM, n: network; in this order',
    'c',
  ),
  ram: Type.Integer({ minimum: 1, maximum: 1 << 24, default: 256, description: 'Memory, MB' }),
  cpus: Type.Integer({ minimum: 1, maximum: 255, default: 1, description: 'Virtual processors' }),
  adapters: Type.Integer({ minimum: 0, maximum: maxAdapters, default: 1, description: 'Network adapters' }),
  adapter_type: Type.String({ ...modelName, default: 'e1000' }),
  custom_adapters: Type.Array(CustomAdapter, {
    maxItems: maxAdapters,
    default: [],
    description: 'Adapters with another model or MAC address than the others',
  }),
  legacy_networking: Type.Boolean({ default: false, description: 'Accepted for older clients; it has no effect' }),
  on_close: choice(
    ['power_off', 'shutdown_signal', 'save_vm_state'],
    'What a stop does: cut the power, press the power button, or save the state',
    'power_off',
  ),
  cpu_throttling: Type.Integer({
    minimum: 0,
    maximum: 800,
    default: 0,
    description: 'Limit of processor time, percent of one processor; 0: no limit',
  }),
  process_priority: choice(
    ['realtime', 'very high', 'high', 'normal', 'low', 'very low', 'null'],
    'Priority of the emulator',
    'low',
  ),
  options: Type.String({
    maxLength: 8192,
    pattern: '^[^\\u0000]*$',
    default: '',
    description:
      'Further command-line options, in words as a shell splits them; %vm-name%, %vm-id%, %project-id%, %project-path%, %console-port% and %guest-cid% are replaced',
    expects: 'a string of at most 8192 characters',
  }),
} as const

// The service derives qemu_path from the platform, or the platform from qemu_path, when only one is given.
const qemuPath = Type.String({ minLength: 1, maxLength: 4096, description: 'Emulator: a path, or a name in PATH' })
const Platform = choice(platforms, 'Processor of the machine: it is emulated by qemu-system-x86_64 and the like')
// An empty text means a generated address, like null.
const macInput = Type.Union([MacAddress, Type.Literal('')], {
  description: 'MAC address of the first adapter, the others follow; generated from the ids when empty',
  expects: 'a MAC address such as 0c:12:34:56:78:00, or nothing',
})
const acpiShutdown = Type.Boolean({
  description: 'Older form of on_close: true is shutdown_signal, false is power_off. on_close takes precedence',
})

const md5Fields = {
  hda_disk_image_md5sum: hda.md5,
  hdb_disk_image_md5sum: hdb.md5,
  hdc_disk_image_md5sum: hdc.md5,
  hdd_disk_image_md5sum: hdd.md5,
  cdrom_image_md5sum: md5('the CD-ROM image'),
  bios_image_md5sum: md5('the firmware'),
  initrd_md5sum: md5('the initial RAM disk'),
  kernel_image_md5sum: md5('the kernel'),
}

export type MachineEmulatorNode = Static<typeof MachineEmulatorNode>
export const MachineEmulatorNode = objectSchema('MachineEmulatorNode', 'A machine run by QEMU', {
  ...nodeFields,
  qemu_path: Type.String({ description: 'Path of the emulator' }),
  platform: Platform,
  mac_address: MacAddress,
  acpi_shutdown: acpiShutdown,
  save_vm_state: Type.Optional(nullable(Type.Boolean({ description: 'Older form of on_close; not set' }))),
  ...machineSettings,
  ...md5Fields,
})

export const { create: MachineEmulatorCreate, update: MachineEmulatorUpdate } = inputsOf(
  'machine',
  MachineEmulatorNode,
  {
    optional: {
      qemu_path: qemuPath,
      platform: Platform,
      mac_address: macInput,
      acpi_shutdown: acpiShutdown,
      ...machineSettings,
      ...md5Fields,
    },
  },
)
export type MachineEmulatorCreate = Static<typeof MachineEmulatorCreate>
export type MachineEmulatorUpdate = Static<typeof MachineEmulatorUpdate>

export type ResizeDisk = Static<typeof ResizeDisk>
export const ResizeDisk = closedSchema('ResizeDisk', 'A disk of a machine, and how much it grows', {
  drive_name: choice(diskSlots, 'The disk'),
  extend: Type.Integer({ minimum: 1, maximum: 1 << 24, description: 'MB to add' }),
})

const MachineCapabilities = objectSchema('MachineCapabilities', 'The acceleration of machines on this compute', {
  kvm: Type.Array(Type.String(), { description: 'Platforms that KVM accelerates; empty when it cannot be used' }),
})
const EmulatorFilter = closedSchema('EmulatorFilter', 'Selects emulators', {
  archs: Type.Optional(
    Type.Array(Platform, { maxItems: 100, description: 'Only emulators of these platforms; absent: all' }),
  ),
})

const schemas = { node: MachineEmulatorNode, create: MachineEmulatorCreate, update: MachineEmulatorUpdate }
const needs = 'the emulator or an image is missing (its name is then in `image`)'

export const machineEmulator = kind({
  name: 'machine-emulator',
  noun: 'machine',
  title: 'QEMU machine',
  typeDefaults: ({ platform, qemu_path }) => (platform == null && qemu_path == null ? { platform: 'x86_64' } : {}),
  formParts: {
    General: ['ram', 'cpus', 'platform', 'on_close', 'usage'],
    Disks: [
      ...diskSlots.flatMap((slot) => [`${slot}_disk_image`, `${slot}_disk_interface`]),
      'cdrom_image',
      'linked_clone',
    ],
    Network: ['adapters', 'adapter_type', 'mac_address'],
    Boot: ['boot_priority', 'firmware', 'bios_image', 'kernel_image', 'initrd', 'kernel_command_line'],
    Advanced: ['options', 'qemu_path', 'cpu_throttling', 'process_priority', 'acpi_shutdown', 'legacy_networking'],
  },
  formRows: {
    Disks: {
      noun: 'Disk',
      titles: ['Image', 'Interface'],
      rows: diskSlots.map((slot) => [`${slot}_disk_image`, `${slot}_disk_interface`]),
    },
  },
  firstSettings: ['hda_disk_image', 'ram', 'cpus', 'adapters'],
  aliases: ['qemu'],
  gns3: gns3Kind({
    nodeType: 'qemu',
    hostName: 'rfc1123',
    members: [
      ...['node_directory', 'console', 'console_type', 'command_line', 'usage', 'qemu_path', 'platform', 'mac_address'],
      ...diskSlots.flatMap((slot) => ['', '_md5sum'].map((suffix) => `${slot}_disk_image${suffix}`)),
      ...diskSlots.map((slot) => `${slot}_disk_interface`),
      ...['cdrom_image', 'cdrom_image_md5sum', 'bios_image', 'bios_image_md5sum', 'initrd', 'initrd_md5sum'],
      ...['kernel_image', 'kernel_image_md5sum', 'kernel_command_line', 'boot_priority', 'ram', 'cpus', 'adapters'],
      ...['adapter_type', 'legacy_networking', 'on_close', 'cpu_throttling', 'process_priority', 'options'],
    ],
    settings: ['linked_clone', 'custom_adapters'],
    added: ({ firmware }) => ({
      uefi: firmware === 'uefi',
      replicate_network_connection_state: true,
      tpm: false,
      create_config_disk: false,
    }),
    // There a disk with an image but no interface is attached by IDE.
    ofNode: (given) =>
      Object.fromEntries(
        diskSlots.flatMap((slot) => {
          const { [`${slot}_disk_image`]: image, [`${slot}_disk_interface`]: by } = given
          return by === 'none' && image !== undefined && image !== '' ? [[`${slot}_disk_interface`, 'ide']] : []
        }),
      ),
    fromGns3: ({ uefi }) => (typeof uefi === 'boolean' ? { firmware: uefi ? 'uefi' : 'bios' } : {}),
  }),
  ...schemas,
  v1: v1Of('machine', schemas, { startShows: true }),
  liveFields: ['usage', 'cdrom_image', 'cpu_throttling'],
  management: {},
  ports: ({ adapters, mac_address, adapter_type }) =>
    adaptersOfOnePort(adapters).map((shape) => ({
      ...shape,
      mac_address: macOfAdapter(mac_address, shape.adapter),
      adapter_type: typeof adapter_type === 'string' ? adapter_type : null,
    })),
  addressIssue: (settings) => addressIssue(settings as AddressSettings),
  nioTypes: ethernetNios,
  consoles: ['text', 'screen'],
  canBeSuspended: true,
  hostAccess: machineHostAccess,
  conflicts: {
    create: `no port is left, another machine uses an image as its own, or ${needs}`,
    update: `The change is not possible now, another machine uses an image as its own, or ${needs}`,
    start: `The machine cannot run now, and the message says why; or ${needs}`,
  },
  image: { field: 'hda_disk_image', isDisk: true, archiveDirectory: 'QEMU' },
  isShownFirst: true,
  actions: {
    resizeDisk: action({
      method: 'POST',
      path: 'resize_disk',
      labPath: 'resize_disk',
      summary: 'Enlarge a disk of a stopped machine; its image stays unchanged',
      versions: ['v2'],
      input: ResizeDisk,
      answer: { status: 201, description: 'Enlarged' },
      errors: {
        409: 'The machine is running or has no such disk, the tool failed, or the image is missing (its name is then in `image`)',
        507: 'The disk is nearly full',
      },
    }),
  },
  computeActions: {
    binaries: computeAction({
      method: 'GET',
      path: 'binaries',
      group: 'tools',
      summary: 'List the emulators of the host',
      description: 'Older clients send `archs` in a body; `?archs=` takes precedence.',
      input: EmulatorFilter,
      query: Type.Object({
        archs: Type.Optional(
          Type.String({
            description: 'Platforms, separated by commas or given several times; it takes precedence over the body',
          }),
        ),
      }),
      output: Type.Array(FoundProgram),
      answer: { description: 'Every emulator in PATH that answers' },
      isSlow: true,
      merge: unionBy(({ path }) => path),
    }),
    capabilities: computeAction({
      method: 'GET',
      path: 'capabilities',
      group: 'tools',
      summary: 'List the platforms that this host can run with hardware acceleration',
      output: MachineCapabilities,
      answer: { description: 'The platforms' },
      // A gateway may place a lab on any compute: only platforms of all computes count.
      merge: ([first, ...others]) => ({
        kvm: (first?.kvm ?? []).filter((platform) => others.every(({ kvm }) => kvm.includes(platform))),
      }),
    }),
  },
})
