import { type Static, Type } from '@sinclair/typebox'
import { type HubCreate, type HubNode, HubPort, type HubUpdate, hub } from '../../../../src/model/kinds/hub.ts'
import type { KindNode, NodeKind } from '../../engine/nodes/kind.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import type { BridgeSpec } from '../../keeper/protocol/protocol.ts'
import { eightPorts, MappedPortsKind, mappingOf } from '../bridge/mapped-ports.ts'

/** The properties in the record of a hub. */
export type HubProperties = Static<typeof HubProperties>
export const HubProperties = Type.Object({ ports_mapping: mappingOf(HubPort, eightPorts) })
type HubKindNode = KindNode<HubProperties>

/** The hub kind: Ethernet hubs in the packet path of the keeper. */
export class HubKind extends MappedPortsKind<HubPort, HubProperties> implements NodeKind<HubProperties, typeof hub> {
  readonly descriptor = hub
  readonly schema = HubProperties

  view(node: HubKindNode): HubNode {
    return { ...fieldsOf(node), console_type: 'none', ...node.record.properties }
  }

  prepare(node: HubKindNode, input: HubCreate): Promise<void> {
    return this.update(node, input)
  }

  async update(node: HubKindNode, { ports_mapping }: HubUpdate): Promise<void> {
    if (ports_mapping != null) await this.change(node, { ports_mapping: this.mapping(ports_mapping, {}) })
  }

  bridgeOf({ ports_mapping }: HubProperties): BridgeSpec {
    const ports = ports_mapping.map(({ port_number }) => ({
      port_number,
      mode: 'access',
      vlan: 1,
      ethertype: 0x8100,
    })) as BridgeSpec['ports']
    return { type: 'bridge', forwards: 'all', ageing_s: 300, ports }
  }
}
