import type { Static } from '@sinclair/typebox'
import { objectSchema } from '../schema/fields.ts'
import { ethernetNios } from '../schema/nio.ts'
import { noConsole, nodeFields } from '../schema/node-fields.ts'
import { inputsOf } from './inputs.ts'
import { gns3Kind, kind } from './kind.ts'
import { mappedPorts, mappedShapes, portIdentity } from './mapped-ports.ts'
import { mappedPortsFor } from './segment.ts'
import { v1Of } from './v1.ts'

/** A port of a hub. */
export type HubPort = Static<typeof HubPort>
export const HubPort = objectSchema('HubPort', 'A port of a hub', portIdentity)
const { input: portsInput, shown: portsShown } = mappedPorts(HubPort)

/** An Ethernet hub. */
export type HubNode = Static<typeof HubNode>
export const HubNode = objectSchema('HubNode', 'An Ethernet hub: frames that enter one port leave through all others', {
  ...nodeFields,
  console_type: noConsole,
  ports_mapping: portsShown,
})
export const { create: HubCreate, update: HubUpdate } = inputsOf('hub', HubNode, {
  optional: { ports_mapping: portsInput },
})
export type HubCreate = Static<typeof HubCreate>
export type HubUpdate = Static<typeof HubUpdate>
const schemas = { node: HubNode, create: HubCreate, update: HubUpdate }

export const hub = kind({
  name: 'hub',
  noun: 'hub',
  title: 'Hub',
  aliases: ['ethernet_hub', 'ethernet-hub'],
  gns3: gns3Kind({
    nodeType: 'ethernet_hub',
    members: ['ports_mapping'],
    template: { name: 'Ethernet hub', symbol: ':/symbols/hub.svg' },
  }),
  isAlwaysOn: true,
  ...schemas,
  v1: v1Of('hub', schemas, { lacks: ['console_type'] }),
  template: { name: 'Hub', category: 'switch', nameFormat: 'Hub{0}', symbol: 'hub' },
  ports: mappedShapes,
  portsFor: mappedPortsFor(HubPort, () => 8),
  startWeight: 0,
  nioTypes: ethernetNios,
  consoles: [],
  canBeSuspended: false,
  conflicts: {
    create: 'or the hub cannot be created now',
    update: 'The change is not possible in the current state',
    start: 'The hub cannot run now; the message says why',
  },
})
