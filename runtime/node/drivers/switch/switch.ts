import { type Static, Type } from '@sinclair/typebox'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { compareText } from '../../../../src/lib/text/compare-text.ts'
import {
  ethernetSwitch,
  type SwitchCreate,
  type SwitchNode,
  SwitchPort,
  type SwitchUpdate,
} from '../../../../src/model/kinds/switch.ts'
import type { KindNode, NodeActions, NodeKind } from '../../engine/nodes/kind.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import type { BridgeSpec } from '../../keeper/protocol/protocol.ts'
import { eightPorts, MappedPortsKind, mappingOf } from '../bridge/mapped-ports.ts'

const plain = { type: 'access', vlan: 1, ethertype: '' } as const

/** The properties in the record of a switch. */
export type SwitchProperties = Static<typeof SwitchProperties>
export const SwitchProperties = Type.Object({
  ports_mapping: mappingOf(
    SwitchPort,
    eightPorts.map((port) => ({ ...port, ...plain })),
  ),
  ageing_time: Type.Integer({ minimum: 1, default: 300 }),
})
type SwitchKindNode = KindNode<SwitchProperties>

/** The switch kind: Ethernet switches in the packet path of the keeper. */
export class SwitchKind
  extends MappedPortsKind<SwitchPort, SwitchProperties>
  implements NodeKind<SwitchProperties, typeof ethernetSwitch>
{
  readonly descriptor = ethernetSwitch
  readonly schema = SwitchProperties

  readonly actions: NodeActions<typeof ethernetSwitch, SwitchProperties> = {
    macTable: (at) =>
      at.exclusively(async (node) => {
        const { entries } = await this.host.keeper.call('bridge.table', { key: running(node) })
        return [...entries].sort((a, b) => a.vlan - b.vlan || compareText(a.mac, b.mac))
      }),
    clearMacTable: (at) =>
      at.exclusively(async (node) => {
        await this.host.keeper.call('bridge.clear', { key: running(node) })
      }),
  }

  view(node: SwitchKindNode): SwitchNode {
    return { ...fieldsOf(node), console_type: 'none', ...node.record.properties }
  }

  prepare(node: SwitchKindNode, input: SwitchCreate): Promise<void> {
    return this.update(node, input)
  }

  async update(node: SwitchKindNode, { ports_mapping, ageing_time }: SwitchUpdate): Promise<void> {
    const { properties } = node.record
    if (ports_mapping == null && (ageing_time ?? properties.ageing_time) === properties.ageing_time) return
    await this.change(node, {
      ports_mapping: ports_mapping == null ? properties.ports_mapping : this.mapping(ports_mapping, plain),
      ageing_time: ageing_time ?? properties.ageing_time,
    })
  }

  bridgeOf({ ports_mapping, ageing_time }: SwitchProperties): BridgeSpec {
    const ports = ports_mapping.map(({ port_number, type: mode, vlan, ethertype }) => ({
      port_number,
      mode,
      vlan,
      ethertype: Number(ethertype === '' ? '0x8100' : ethertype),
    }))
    return { type: 'bridge', forwards: 'learned', ageing_s: ageing_time, ports }
  }
}

/** The key of a running switch; 409 for a stopped one. */
function running({ key, status }: SwitchKindNode): string {
  if (status === 'stopped') throw conflict('The switch is not running: start it first', { code: 'node-stopped' })
  return key
}
