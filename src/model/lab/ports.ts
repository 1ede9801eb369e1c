import { type LineType, linkTypesOf } from '../capture.ts'
import { kindOf } from '../kinds/node.ts'
import { isKnownKind, type LabNode, type LabPort } from './node.ts'

/** Display names of the link types of captures. */
const captureNames: Readonly<Record<string, string>> = {
  DLT_EN10MB: 'Ethernet',
  DLT_C_HDLC: 'Cisco HDLC',
  DLT_PPP_SERIAL: 'Cisco PPP',
  DLT_FRELAY: 'Frame Relay',
  DLT_ATM_RFC1483: 'ATM',
}

const dataLinkTypes = (line: LineType): Record<string, string> =>
  Object.fromEntries(linkTypesOf[line].map((type) => [captureNames[type] ?? type, type]))

type Named = Pick<
  LabNode,
  'node_type' | 'properties' | 'port_name_format' | 'port_segment_size' | 'first_port_name' | 'custom_adapters'
>

/**
 * The ports of a node, with their names. None for an unknown kind: see `placeholderPorts`. `countsAll`: a port with a name of its own takes a
 * number of the format, too.
 */
export function portsOf(node: Named, countsAll = false): LabPort[] {
  if (!isKnownKind(node.node_type)) return []
  const shapes = kindOf(node.node_type).ports?.(node.properties) ?? []
  const counts = { ethernet: 0, serial: 0 }
  return shapes.map(({ adapter, port, line = 'ethernet', name, mac_address, adapter_type }) => {
    const custom = node.custom_adapters.find(({ adapter_number }) => adapter_number === adapter)
    const isCounted = name === undefined && (countsAll || custom?.port_name === undefined)
    const byFormat = isCounted ? namedByFormat(node, counts[line]++) : ''
    const given = custom?.port_name ?? name ?? byFormat
    return {
      name: given,
      short_name: shortName(given),
      adapter_number: adapter,
      port_number: port,
      link_type: line,
      data_link_types: dataLinkTypes(line),
      ...(line === 'ethernet' && {
        mac_address: custom?.mac_address ?? mac_address ?? null,
        adapter_type: custom?.adapter_type ?? adapter_type ?? null,
      }),
    }
  })
}

/** `{0}`: number of the port in its segment, `{1}`: number of the segment; `{port5}` and `{segment1}` count from that digit. */
function namedByFormat({ port_name_format, port_segment_size: size, first_port_name }: Named, index: number): string {
  if (index === 0 && first_port_name !== null && first_port_name !== '') return first_port_name
  const at = first_port_name !== null && first_port_name !== '' ? index - 1 : index
  const [segment, port] = size > 0 ? [Math.floor(at / size), at % size] : [0, at]
  return port_name_format.replace(/\{(0|1|port|segment)(\d?)\}/g, (_, word: string, from: string) => {
    const number = word === '0' || word === 'port' ? port : segment
    return String(number + Number(from || 0))
  })
}

/** The short form of IOS: `Ethernet0/1` becomes `e0/1`, `GigabitEthernet0` becomes `Gi0`. */
function shortName(name: string): string {
  const found = /^([A-Za-z][A-Za-z-]*)\s*(\d.*)$/.exec(name)
  if (found === null) return name
  const [, word = '', number = ''] = found
  const known = {
    ethernet: 'e',
    fastethernet: 'Fa',
    gigabitethernet: 'Gi',
    tengigabitethernet: 'Te',
    serial: 's',
    eth: 'eth',
  }
  return `${known[word.toLowerCase() as keyof typeof known] ?? word}${number}`
}

/** Finds a port by its name or short name in any case, by `adapter/port`, or by `eth` and the adapter. */
export function portNamed(ports: readonly LabPort[], word: string): LabPort | undefined {
  const known = indexes.get(ports) ?? indexOf(ports)
  indexes.set(ports, known)
  return known.get(word.toLowerCase())
}

/** Ports by their names: a machine has hundreds, and each may have a link. */
const indexes = new WeakMap<readonly LabPort[], ReadonlyMap<string, LabPort>>()

function indexOf(ports: readonly LabPort[]): ReadonlyMap<string, LabPort> {
  const found = new Map<string, LabPort>()
  const words: ((port: LabPort) => string | undefined)[] = [
    ({ name }) => name.toLowerCase(),
    ({ short_name }) => short_name.toLowerCase(),
    ({ adapter_number, port_number }) => `${adapter_number}/${port_number}`,
    ({ adapter_number, port_number }) => (port_number === 0 ? `eth${adapter_number}` : undefined),
  ]
  for (const wordOf of words)
    for (const port of ports) {
      const word = wordOf(port)
      if (word !== undefined && !found.has(word)) found.set(word, port)
    }
  return found
}
