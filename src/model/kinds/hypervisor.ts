import { type Static, Type } from '@sinclair/typebox'
import { oneLine } from '../../lib/text/one-line.ts'
import { changing, maybe, nullable, objectSchema, oneOf, PortNumber } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { adaptersOfOnePort, computeAction, gns3Kind, kind, unionBy } from './kind.ts'
import { v1Of } from './v1.ts'

/** Hypervisors whose VMs can be nodes. */
export const hypervisorDrivers = ['libvirt', 'virtualbox'] as const
export type HypervisorDriverName = (typeof hypervisorDrivers)[number]

/** Largest number of adapters of a VM, in any hypervisor (VirtualBox with the ICH9 chipset). */
const maxVmAdapters = 36

const consoleType = oneOf(['telnet', 'none'], {
  default: 'telnet',
  description: 'telnet: the first serial port of the VM; none: nothing listens',
})
const vmname = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: oneLine,
  description: 'Name of the VM in its hypervisor',
  expects: 'the name of a VM, 1 to 255 characters in one line',
})

const adapterTypeName = { minLength: 1, maxLength: 128 }

const CustomVmAdapter = Type.Object(
  {
    adapter_number: Type.Integer({ minimum: 0, maximum: maxVmAdapters - 1 }),
    port_name: maybe(Type.String({ maxLength: 64, description: 'Name of the port, for display' })),
    adapter_type: maybe(Type.String(adapterTypeName)),
  },
  { additionalProperties: false, description: 'The settings of one adapter that differ from the others' },
)

/** The settings of a VM's node, with their defaults. */
export const vmSettings = {
  usage: Type.String({ maxLength: 65536, default: '', description: 'Notes on how to use the VM' }),
  adapters: Type.Integer({
    minimum: 0,
    maximum: maxVmAdapters,
    default: 0,
    description: 'Number of adapters that are ports of the node: the first adapters of the VM',
  }),
  adapter_type: Type.String({
    ...adapterTypeName,
    default: 'Intel PRO/1000 MT Desktop (82540EM)',
    description: 'Model of these adapters, by its name in the hypervisor or in older clients',
  }),
  custom_adapters: Type.Array(CustomVmAdapter, {
    maxItems: maxVmAdapters,
    default: [],
    description: 'Adapters that differ from adapter_type',
  }),
  use_any_adapter: Type.Boolean({
    default: false,
    description: 'Whether the running node may also use adapters that the VM uses for something else',
  }),
  enable_remote_console: Type.Boolean({
    default: false,
    description: 'Whether the screen of the VM is served at `remote_console` while it runs',
  }),
  headless: Type.Boolean({ default: false, description: 'Whether the VM runs without a window on the host' }),
  on_close: oneOf(['power_off', 'shutdown_signal', 'save_vm_state'], {
    default: 'power_off',
    description: 'What a stop does',
  }),
} as const

const acpiShutdown = Type.Boolean({
  description: 'Older form of on_close: true is shutdown_signal, false is power_off. on_close takes precedence',
})
const ram = Type.Integer({ minimum: 0, maximum: 65535, description: 'Memory, MB; 0: as the VM is defined' })

export type HypervisorNode = Static<typeof HypervisorNode>
export const HypervisorNode = objectSchema('HypervisorNode', 'A VM of a hypervisor of the host', {
  ...nodeFields,
  node_directory: nullable(Type.String({ description: 'Directory of a linked clone; null for any other VM' })),
  console_type: consoleType,
  vmname,
  linked_clone: Type.Boolean({
    description: 'Whether the VM is an overlay of another VM, and is deleted with the node',
  }),
  ram,
  acpi_shutdown: acpiShutdown,
  remote_console: changing(
    nullable(
      Type.Integer({
        ...PortNumber,
        description:
          'TCP port of the screen; null without enable_remote_console, or until the next start after it was set on a running node',
      }),
    ),
  ),
  driver: oneOf(['libvirt', 'virtualbox'], { description: 'The hypervisor of the VM' }),
  ...vmSettings,
})

export const { create: HypervisorCreate, update: HypervisorUpdate } = inputsOf('VM', HypervisorNode, {
  required: { vmname },
  atCreation: {
    linked_clone: Type.Boolean({ description: 'Whether the node gets a VM of its own, an overlay of the named VM' }),
  },
  optional: { ram, acpi_shutdown: acpiShutdown, ...vmSettings },
  note: '. With a name, vmname is ignored',
})
export type HypervisorCreate = Static<typeof HypervisorCreate>
export type HypervisorUpdate = Static<typeof HypervisorUpdate>

const VmSummary = objectSchema('VmSummary', 'A VM that a node can use', {
  vmname: Type.String(),
  ram: Type.Integer({ description: 'Memory, MB' }),
})

const schemas = { node: HypervisorNode, create: HypervisorCreate, update: HypervisorUpdate }

export const hypervisor = kind({
  name: 'hypervisor',
  noun: 'VM',
  title: 'VM of a hypervisor',
  formParts: {
    General: ['vmname', 'ram', 'on_close', 'headless', 'enable_remote_console', 'usage'],
    Network: ['adapters', 'adapter_type', 'use_any_adapter'],
    Advanced: ['acpi_shutdown'],
  },
  firstSettings: ['vmname', 'ram', 'adapters'],
  aliases: ['virtualbox', 'vmware'],
  gns3: gns3Kind({
    nodeType: 'virtualbox',
    otherNodeTypes: ['vmware'],
    members: [
      ...['usage', 'vmname', 'node_directory', 'headless', 'on_close', 'adapters', 'use_any_adapter', 'adapter_type'],
      ...['console', 'console_type', 'ram', 'linked_clone', 'custom_adapters'],
    ],
  }),
  ...schemas,
  v1: v1Of('VM', schemas, {
    lacks: ['console_type', 'status', 'custom_adapters'],
    hides: ['linked_clone'],
    hasEvents: false,
  }),
  v2: {
    startShows: false,
    // Controllers send all members of a node: after a rename they still send the old vmname of a linked clone.
    changes: (body) => (body.name == null ? body : { ...body, vmname: null }),
  },
  liveFields: ['usage'],
  ports: ({ adapters }) => adaptersOfOnePort(adapters),
  nioTypes: ethernetNios,
  consoles: ['text', 'screen'],
  canBeSuspended: true,
  canBeCopied: false,
  isStrict: true,
  renameNeedsRestart: true,
  conflicts: {
    create: 'the hypervisor cannot be reached or has no such VM, another node has the VM, or no port is left',
    update: 'The change is not possible now, or the hypervisor has no such VM',
    start: 'The VM cannot run now, or another program started it; the message says why',
  },
  computeActions: {
    vms: computeAction({
      method: 'GET',
      path: 'vms',
      summary: 'List the VMs that nodes can use, without the linked clones of nodes',
      output: Type.Array(VmSummary),
      answer: { description: 'The VMs' },
      errors: { 409: 'No hypervisor can be reached' },
      isSlow: true,
      merge: unionBy(({ vmname }) => vmname),
    }),
  },
})
