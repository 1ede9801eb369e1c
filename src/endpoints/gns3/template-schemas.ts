import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { oneOf } from '../../model/schema/fields.ts'

/** The members of templates in GNS3 2.2, with their defaults, by the type of the template. */

const text = (byDefault = '') => Type.Optional(Type.String({ maxLength: 65_536, default: byDefault }))
const filled = (byDefault?: string) =>
  Type.String({ minLength: 1, maxLength: 4096, ...(byDefault !== undefined && { default: byDefault }) })
const whole = (byDefault: number, minimum?: number, maximum?: number) =>
  Type.Optional(
    Type.Integer({
      default: byDefault,
      ...(minimum !== undefined && { minimum }),
      ...(maximum !== undefined && { maximum }),
    }),
  )
const yes = Type.Optional(Type.Boolean({ default: true }))
const no = Type.Optional(Type.Boolean({ default: false }))
const choice = (values: readonly string[], byDefault?: string) =>
  Type.Optional(oneOf(values, byDefault === undefined ? {} : { default: byDefault }))
const list = (items: TSchema, byDefault: readonly unknown[] = []) =>
  Type.Optional(Type.Array(items, { maxItems: 1024, default: byDefault }))
const mac = (pattern: string, expects: string) =>
  Type.Optional(
    Type.Union([Type.String({ pattern: `^(${pattern})?$`, expects }), Type.Null()], { default: '', expects }),
  )
const ethernetMac = mac('([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}', 'a MAC address such as 0c:12:34:56:78:00, or none')

const customAdapter = Type.Object(
  {
    adapter_number: Type.Integer(),
    port_name: Type.Optional(filled()),
    adapter_type: Type.Optional(filled()),
    mac_address: Type.Optional(Type.String({ pattern: '^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$' })),
  },
  { additionalProperties: false },
)

interface Base {
  readonly format?: string
  readonly symbol: string
  readonly category: string
}

/** A template with the members that all have. */
const template = ({ format = '{name}-{0}', symbol, category }: Base, members: TProperties): TObject =>
  Type.Object(
    {
      template_id: Type.Optional(Type.String({ format: 'uuid', expects: 'a UUID' })),
      template_type: filled(),
      name: filled(),
      compute_id: Type.Union([Type.String(), Type.Null()], { expects: 'the id of a compute, or null' }),
      default_name_format: Type.Optional(filled(format)),
      symbol: Type.Optional(filled(`:/symbols/${symbol}.svg`)),
      category: Type.Optional(oneOf(['router', 'switch', 'guest', 'firewall'], { default: category })),
      builtin: Type.Optional(Type.Boolean()),
      ...members,
    },
    { additionalProperties: false },
  )

const console = (types: readonly string[] = ['telnet', 'none'], byDefault = 'telnet') => ({
  console_type: choice(types, byDefault),
  console_auto_start: no,
})
const portNames = { first_port_name: text(), port_name_format: text('Ethernet{0}'), port_segment_size: whole(0) }
const onClose = choice(['power_off', 'shutdown_signal', 'save_vm_state'], 'power_off')
/** Eight ports, with what each has beside its name. */
const eightPorts = (more: object = {}) =>
  Array.from({ length: 8 }, (_, port_number) => ({ name: `Ethernet${port_number}`, port_number, ...more }))
const port = (more: TProperties = {}) =>
  Type.Object({ name: filled(), port_number: Type.Integer({ minimum: 0 }), ...more }, { additionalProperties: false })

const qemuPlatforms = [
  ...['aarch64', 'alpha', 'arm', 'cris', 'i386', 'lm32', 'm68k', 'microblaze', 'microblazeel', 'mips', 'mips64'],
  ...['mips64el', 'mipsel', 'moxie', 'or32', 'ppc', 'ppc64', 'ppcemb', 's390x', 'sh4', 'sh4eb', 'sparc', 'sparc64'],
  ...['tricore', 'unicore32', 'x86_64', 'xtensa', 'xtensaeb', ''],
]
const diskInterfaces = ['ide', 'sata', 'nvme', 'scsi', 'sd', 'mtd', 'floppy', 'pflash', 'virtio', 'none']
const disks = Object.fromEntries(
  ['hda', 'hdb', 'hdc', 'hdd'].flatMap((slot) => [
    [`${slot}_disk_image`, text()],
    [`${slot}_disk_interface`, choice(diskInterfaces, 'none')],
  ]),
)

const qemu = template(
  { symbol: 'qemu_guest', category: 'guest' },
  {
    qemu_path: text(),
    usage: text(),
    platform: choice(qemuPlatforms, ''),
    linked_clone: yes,
    ram: whole(256),
    cpus: whole(1, 1, 255),
    adapters: whole(1, 0, 275),
    // Models of adapters differ between versions of QEMU: the host says which it has.
    adapter_type: Type.Optional(filled('e1000')),
    mac_address: ethernetMac,
    ...portNames,
    ...console(['telnet', 'vnc', 'spice', 'spice+agent', 'none']),
    boot_priority: choice(['c', 'd', 'n', 'cn', 'cd', 'dn', 'dc', 'nc', 'nd'], 'c'),
    ...disks,
    cdrom_image: text(),
    initrd: text(),
    kernel_image: text(),
    bios_image: text(),
    kernel_command_line: text(),
    legacy_networking: no,
    replicate_network_connection_state: yes,
    tpm: no,
    uefi: no,
    create_config_disk: no,
    on_close: onClose,
    cpu_throttling: whole(0, 0, 800),
    process_priority: choice(['realtime', 'very high', 'high', 'normal', 'low', 'very low'], 'normal'),
    options: text(),
    custom_adapters: list(customAdapter),
  },
)

const cloudPort = (type: readonly string[], more: TProperties) => port({ type: oneOf(type), ...more })
const udpPort = Type.Integer({ minimum: 1, maximum: 65_535 })
const cloud = template(
  { format: 'Cloud{0}', symbol: 'cloud', category: 'guest' },
  {
    ports_mapping: list(
      Type.Union([
        cloudPort(['ethernet', 'tap'], { interface: filled() }),
        cloudPort(['udp'], { lport: udpPort, rhost: filled(), rport: udpPort }),
      ]),
    ),
    remote_console_host: Type.Optional(filled('127.0.0.1')),
    remote_console_port: whole(23, 1, 65_535),
    remote_console_type: choice(['telnet', 'vnc', 'spice', 'http', 'https', 'none'], 'none'),
    remote_console_http_path: Type.Optional(filled('/')),
  },
)

const ethernetSwitch = template(
  { format: 'Switch{0}', symbol: 'ethernet_switch', category: 'switch' },
  {
    ports_mapping: list(
      port({
        type: oneOf(['access', 'dot1q', 'qinq']),
        vlan: Type.Optional(Type.Integer({ minimum: 1 })),
        ethertype: Type.Optional(oneOf(['', '0x8100', '0x88A8', '0x9100', '0x9200'])),
      }),
      eightPorts({ type: 'access', vlan: 1, ethertype: '' }),
    ),
    console_type: choice(['telnet', 'none'], 'none'),
  },
)

const iou = template(
  { format: 'IOU{0}', symbol: 'multilayer_switch', category: 'router' },
  {
    path: filled(),
    usage: text(),
    ethernet_adapters: whole(2),
    serial_adapters: whole(2),
    ram: whole(1024),
    nvram: whole(256),
    use_default_iou_values: no,
    startup_config: text('iou_l3_base_startup-config.txt'),
    private_config: text(),
    l1_keepalives: no,
    ...console(),
  },
)

const wics = ['WIC-1ENET', 'WIC-1T', 'WIC-2T', '']
const cards = [
  ...['C7200-IO-2FE', 'C7200-IO-FE', 'C7200-IO-GE-E', 'NM-16ESW', 'NM-1E', 'NM-1FE-TX', 'NM-4E', 'NM-4T', 'PA-2FE-TX'],
  ...['PA-4E', 'PA-4T+', 'PA-8E', 'PA-8T', 'PA-A1', 'PA-FE-TX', 'PA-GE', 'PA-POS-OC3', 'C2600-MB-2FE', 'C2600-MB-1E'],
  ...['C1700-MB-1FE', 'C2600-MB-2E', 'C2600-MB-1FE', 'C1700-MB-WIC1', 'GT96100-FE', 'Leopard-2FE', ''],
]
const orNull = (schema: TSchema) => Type.Optional(Type.Union([schema, Type.Null()], { expects: 'a card, or none' }))
const bays = Object.fromEntries([
  ...[0, 1, 2].map((bay) => [`wic${bay}`, orNull(oneOf(wics))]),
  ...[0, 1, 2, 3, 4, 5, 6].map((slot) => [`slot${slot}`, orNull(oneOf(cards))]),
])

/** Memory in MiB, NVRAM in KiB, I/O memory in percent, and the members of one platform. */
const platform = (ram: number, nvram: number, iomem: number | undefined, more: TProperties = {}) => ({
  ram: whole(ram),
  nvram: whole(nvram),
  ...(iomem !== undefined && { iomem: whole(iomem, 0, 100) }),
  sparsemem: yes,
  ...more,
})
const chassis = (types: readonly string[], byDefault: string) => ({ chassis: choice(types, byDefault) })
const platforms: Readonly<Record<string, TProperties>> = {
  c1700: platform(160, 128, 15, { ...chassis(['1720', '1721', '1750', '1751', '1760'], '1760'), sparsemem: no }),
  c2600: platform(
    160,
    128,
    15,
    chassis(['2610', '2620', '2610XM', '2620XM', '2650XM', '2621', '2611XM', '2621XM', '2651XM'], '2651XM'),
  ),
  c2691: platform(192, 256, 5),
  c3600: platform(192, 128, 5, chassis(['3620', '3640', '3660'], '3660')),
  c3725: platform(128, 256, 5),
  c3745: platform(256, 256, 5),
  c7200: platform(512, 512, undefined, {
    npe: choice(['npe-100', 'npe-150', 'npe-175', 'npe-200', 'npe-225', 'npe-300', 'npe-400', 'npe-g2'], 'npe-400'),
    midplane: choice(['std', 'vxr'], 'vxr'),
  }),
}
const dynamips = (members: TProperties) =>
  template(
    { format: 'R{0}', symbol: 'router', category: 'router' },
    {
      platform: oneOf(Object.keys(platforms)),
      image: filled(),
      usage: text(),
      mmap: yes,
      exec_area: whole(64),
      mac_addr: mac('([0-9a-fA-F]{4}\\.){2}[0-9a-fA-F]{4}', 'a MAC address such as ca01.0203.0000, or none'),
      system_id: Type.Optional(filled('FTX0945W0MY')),
      startup_config: text('ios_base_startup-config.txt'),
      private_config: text(),
      idlepc: Type.Optional(
        Type.String({ pattern: '^(0x[0-9a-fA-F]+)?$', default: '', expects: 'such as 0x60606060' }),
      ),
      idlemax: whole(500),
      idlesleep: whole(30),
      disk0: whole(0),
      disk1: whole(0),
      auto_delete_disks: no,
      ...bays,
      ...console(),
      ...members,
    },
  )

const virtualbox = template(
  { symbol: 'vbox_guest', category: 'guest' },
  {
    vmname: filled(),
    usage: text(),
    ram: whole(256, 0, 65_535),
    linked_clone: no,
    adapters: whole(1, 0, 36),
    use_any_adapter: no,
    adapter_type: Type.Optional(filled('Intel PRO/1000 MT Desktop (82540EM)')),
    ...portNames,
    headless: no,
    on_close: onClose,
    ...console(['telnet', 'none'], 'none'),
    custom_adapters: list(customAdapter),
  },
)

const docker = template(
  { symbol: 'docker_guest', category: 'guest' },
  {
    image: filled(),
    usage: text(),
    adapters: whole(1, 0, 99),
    mac_address: ethernetMac,
    start_command: text(),
    environment: text(),
    ...console(['telnet', 'vnc', 'http', 'https', 'none']),
    console_http_port: whole(80, 1, 65_535),
    console_http_path: Type.Optional(filled('/')),
    console_resolution: Type.Optional(
      Type.String({ pattern: '^[0-9]+x[0-9]+$', default: '1024x768', expects: 'such as 1024x768' }),
    ),
    extra_hosts: text(),
    extra_volumes: list(Type.Unknown()),
    memory: whole(0, 0),
    cpus: Type.Optional(Type.Number({ minimum: 0, default: 0 })),
    custom_adapters: list(customAdapter),
  },
)

const vmware = template(
  { symbol: 'vmware_guest', category: 'guest' },
  {
    vmx_path: filled(),
    usage: text(),
    linked_clone: no,
    ...portNames,
    adapters: whole(1, 0, 10),
    adapter_type: Type.Optional(filled('e1000')),
    use_any_adapter: no,
    headless: no,
    on_close: onClose,
    ...console(['telnet', 'none'], 'none'),
    custom_adapters: list(customAdapter),
  },
)

const schemas: Readonly<Record<string, TObject>> = {
  vpcs: template(
    { format: 'PC{0}', symbol: 'vpcs_guest', category: 'guest' },
    { base_script_file: Type.Optional(filled('vpcs_base_config.txt')), ...console() },
  ),
  qemu,
  ethernet_switch: ethernetSwitch,
  ethernet_hub: template(
    { format: 'Hub{0}', symbol: 'hub', category: 'switch' },
    { ports_mapping: list(port(), eightPorts()) },
  ),
  cloud,
  iou,
  dynamips: dynamips({}),
  virtualbox,
  docker,
  vmware,
  traceng: template(
    { format: 'TraceNG{0}', symbol: 'traceng', category: 'guest' },
    {
      ip_address: Type.Optional(filled()),
      default_destination: Type.Optional(filled()),
      console_type: choice(['none'], 'none'),
    },
  ),
}
const routers = new Map(Object.entries(platforms).map(([name, members]) => [name, dynamips(members)]))

export const templateTypes: readonly string[] = Object.keys(schemas)

/** The schema of a template of a type and, for dynamips, a platform; undefined for an unknown type. */
export function templateSchema(type: unknown, platformName: unknown): TObject | undefined {
  if (typeof type !== 'string' || !Object.hasOwn(schemas, type)) return undefined
  return (type === 'dynamips' ? routers.get(String(platformName)) : undefined) ?? schemas[type]
}

/** The defaults of a schema; each call has its own objects. */
export const defaultsIn = ({ properties }: TObject): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      schema.default === undefined ? [] : [[name, structuredClone(schema.default)]],
    ),
  )
