import { type Static, Type } from '@sinclair/typebox'
import { Name, nullable, objectSchema, oneOf, PortNumber } from '../schema/fields.ts'

/** The forms of an inventory, by what reads them. */
export const inventoryFormats = ['json', 'ansible', 'nornir', 'pyats', 'ssh', 'hosts'] as const
export type InventoryFormat = (typeof inventoryFormats)[number]
export const InventoryFormat = oneOf(inventoryFormats, {
  default: 'json',
  description:
    'ansible: an inventory in YAML; nornir: hosts.yaml; pyats: a testbed; ssh: a configuration of OpenSSH; hosts: lines of /etc/hosts',
})

const address = Type.String({ description: 'An IP address' })
const forward = Type.Object(
  { protocol: oneOf(['tcp', 'udp']), host_address: address, host_port: PortNumber, guest_port: PortNumber },
  { description: 'A port of the host that leads to the node' },
)

/** A node of a lab as programs that configure it see it. */
export type InventoryHost = Static<typeof InventoryHost>
const InventoryHost = Type.Object(
  {
    name: Name,
    host_name: Type.String({ description: 'Its name as that of a host, unique in the lab' }),
    node_id: Type.String(),
    kind: Type.String(),
    groups: Type.Array(Type.String(), { description: 'Its kind, and its label `group`, as names of groups' }),
    address: nullable(Type.String({ description: 'Its address in the management network' })),
    forwards: Type.Array(forward),
    console: nullable(
      Type.Object(
        { type: Type.String(), host: address, port: PortNumber },
        { description: 'Its console; null: it has none, or is not open' },
      ),
    ),
  },
  { description: 'A node of the lab' },
)

/** The nodes of a lab, and how programs reach them. */
export type LabInventory = Static<typeof LabInventory>
export const LabInventory = objectSchema('LabInventory', 'The nodes of a lab, and how programs reach them', {
  lab: Name,
  hosts: Type.Array(InventoryHost),
})
