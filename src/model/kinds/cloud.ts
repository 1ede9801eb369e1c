import { type Static, Type } from '@sinclair/typebox'
import { objectSchema, oneOf, PortNumber } from '../schema/fields.ts'
import { deviceName, ethernetNios } from '../schema/nio.ts'
import { noConsole, nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { gns3Kind, kind } from './kind.ts'
import { mappedPorts, mappedShapes, portIdentity } from './mapped-ports.ts'
import { mappedPortsFor } from './segment.ts'
import { v1Of } from './v1.ts'

/** A port of a cloud. */
export type CloudPort = Static<typeof CloudPort>
export const CloudPort = objectSchema('CloudPort', 'A port of a cloud', {
  ...portIdentity,
  type: oneOf(['ethernet', 'tap', 'udp'], {
    default: 'ethernet',
    description: 'ethernet: a network device; tap: a TAP device, created if it does not exist; udp: a UDP tunnel',
  }),
  interface: Type.Optional(deviceName('Device of an ethernet or tap port')),
  lport: Type.Optional(Type.Integer({ ...PortNumber, description: 'Local UDP port of a udp port' })),
  rhost: Type.Optional(Type.String({ minLength: 1, maxLength: 253, description: 'Address or name of its other end' })),
  rport: Type.Optional(Type.Integer({ ...PortNumber, description: 'UDP port of its other end' })),
})
const { input: portsInput, shown: portsShown } = mappedPorts(CloudPort)

/** A cloud: a connection to networks outside the lab. */
export type CloudNode = Static<typeof CloudNode>
export const CloudNode = objectSchema('CloudNode', 'Ports that are devices of the host, TAP devices or UDP tunnels', {
  ...nodeFields,
  console_type: noConsole,
  ports_mapping: portsShown,
  interfaces: Type.Array(
    Type.Object({ name: Type.String(), type: oneOf(['ethernet', 'tap']), special: Type.Boolean() }),
    { changesByItself: true, description: 'Devices of the host that its ports can use' },
  ),
})
export const { create: CloudCreate, update: CloudUpdate } = inputsOf('cloud', CloudNode, {
  optional: { ports_mapping: portsInput },
})
export type CloudCreate = Static<typeof CloudCreate>
export type CloudUpdate = Static<typeof CloudUpdate>
const schemas = { node: CloudNode, create: CloudCreate, update: CloudUpdate }

export const cloud = kind({
  name: 'cloud',
  noun: 'cloud',
  title: 'Cloud',
  gns3: gns3Kind({
    nodeType: 'cloud',
    members: ['node_directory', 'ports_mapping', 'interfaces'],
    // Without ports it has one for every device of the host.
    atCreation: ({ ports_mapping }) =>
      Array.isArray(ports_mapping) && ports_mapping.length === 0 ? { ports_mapping: undefined } : {},
    template: { name: 'Cloud', symbol: ':/symbols/cloud.svg' },
  }),
  isAlwaysOn: true,
  ...schemas,
  v1: v1Of('cloud', schemas, { lacks: ['console_type'] }),
  template: { name: 'Cloud', category: 'guest', nameFormat: 'Cloud{0}', symbol: 'cloud' },
  ports: mappedShapes,
  portsFor: mappedPortsFor(CloudPort, ({ everyPort }) => (Object.keys(everyPort).length > 0 ? 1 : 0)),
  hasHostPorts: true,
  startWeight: 0,
  nioTypes: ethernetNios,
  consoles: [],
  canBeSuspended: false,
  conflicts: {
    create: 'or the cloud cannot be created now',
    update: 'A device or a UDP port is in use, or a privilege is missing',
    start: 'The cloud cannot run now; the message says why',
  },
})
