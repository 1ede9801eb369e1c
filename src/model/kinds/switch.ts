import { type Static, Type } from '@sinclair/typebox'
import { objectSchema, oneOf } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { noConsole, nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { action, gns3Kind, kind } from './kind.ts'
import { mappedPorts, mappedShapes, portIdentity } from './mapped-ports.ts'
import { mappedPortsFor } from './segment.ts'
import { v1Of } from './v1.ts'

const mode = oneOf(['access', 'dot1q', 'qinq'], {
  default: 'access',
  description:
    'access: untagged frames of one VLAN; dot1q: a trunk of all VLANs, tagged except the native one; qinq: a trunk inside an outer VLAN',
})
const vlan = Type.Integer({
  minimum: 1,
  maximum: 4094,
  default: 1,
  description: 'access: its VLAN; dot1q: the native VLAN; qinq: the outer VLAN',
})
const ethertype = oneOf(['', '0x8100', '0x88A8', '0x9100', '0x9200'], {
  default: '',
  description: 'EtherType of the outer tag of a qinq port; "" means 0x8100',
})

/** A port of a switch. */
export type SwitchPort = Static<typeof SwitchPort>
export const SwitchPort = objectSchema('SwitchPort', 'A port of a switch', {
  ...portIdentity,
  type: mode,
  vlan,
  ethertype,
})
const { input: portsInput, shown: portsShown } = mappedPorts(SwitchPort)
const ageing_time = Type.Integer({
  minimum: 1,
  maximum: 1_000_000,
  default: 300,
  description: 'Seconds after which an address that is no longer seen is removed',
})

/** An Ethernet switch. */
export type SwitchNode = Static<typeof SwitchNode>
export const SwitchNode = objectSchema('SwitchNode', 'An Ethernet switch', {
  ...nodeFields,
  console_type: noConsole,
  ports_mapping: portsShown,
  ageing_time,
})
export const { create: SwitchCreate, update: SwitchUpdate } = inputsOf('switch', SwitchNode, {
  optional: { ports_mapping: portsInput, ageing_time },
})
export type SwitchCreate = Static<typeof SwitchCreate>
export type SwitchUpdate = Static<typeof SwitchUpdate>

const MacTable = Type.Array(
  Type.Object({
    mac: Type.String(),
    vlan: Type.Integer(),
    port_number: Type.Integer(),
    age_s: Type.Integer({ description: 'Seconds since it was last seen' }),
  }),
  { $id: 'MacTable', description: 'The addresses that a switch has learned' },
)
const noInput = Type.Object({})
const withoutEmptyEthertype = ({ ethertype, ...port }: SwitchPort) => (ethertype === '' ? port : { ...port, ethertype })
const schemas = { node: SwitchNode, create: SwitchCreate, update: SwitchUpdate }

export const ethernetSwitch = kind({
  name: 'switch',
  noun: 'switch',
  title: 'Switch',
  aliases: ['ethernet_switch', 'ethernet-switch'],
  gns3: gns3Kind({
    nodeType: 'ethernet_switch',
    members: ['console', 'console_type', 'ports_mapping'],
    // Release 3 refuses the empty EtherType.
    added: ({ ports_mapping }) =>
      Array.isArray(ports_mapping) ? { ports_mapping: ports_mapping.map(withoutEmptyEthertype) } : {},
    // A switch of GNS3 has a console that shows its MAC table; ours has the action `mac-table`.
    fromGns3: ({ console_type }) => (console_type === undefined ? {} : { console_type: 'none' }),
    template: { name: 'Ethernet switch', symbol: ':/symbols/ethernet_switch.svg', console_type: 'none' },
  }),
  isAlwaysOn: true,
  ...schemas,
  v1: v1Of('switch', schemas, { lacks: ['console_type'] }),
  template: { name: 'Switch', category: 'switch', nameFormat: 'Switch{0}', symbol: 'switch' },
  ports: mappedShapes,
  portsFor: mappedPortsFor(SwitchPort, () => 8),
  hasVlans: true,
  startWeight: 0,
  nioTypes: ethernetNios,
  consoles: [],
  canBeSuspended: false,
  conflicts: {
    create: 'or the switch cannot be created now',
    update: 'The change is not possible in the current state',
    start: 'The switch cannot run now; the message says why',
  },
  actions: {
    macTable: action({
      method: 'GET',
      path: 'mac-table',
      summary: 'Read the addresses that a switch has learned',
      input: noInput,
      output: MacTable,
      answer: { description: 'The addresses' },
      errors: { 409: 'The switch is not running' },
    }),
    clearMacTable: action({
      method: 'POST',
      path: 'mac-table/clear',
      summary: 'Remove the addresses that a switch has learned',
      input: noInput,
      answer: { description: 'Removed' },
      errors: { 409: 'The switch is not running' },
    }),
  },
})
