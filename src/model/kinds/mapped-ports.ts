import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'
import { closedSchema, Name } from '../schema/fields.ts'
import type { PortShape } from './kind.ts'

const maxPorts = 1024

/** The members of every port in `ports_mapping`. */
export const portIdentity = {
  name: Type.String({ ...Name, description: 'Name of the port; `Ethernet` and its number when none is given' }),
  port_number: Type.Integer({ minimum: 0, maximum: maxPorts - 1, description: 'Unique in the node' }),
}

/** The schemas of `ports_mapping`, as it is shown and as input. In the input only the number is required. */
export function mappedPorts<P extends TProperties & typeof portIdentity>(port: TObject<P>) {
  const { port_number, ...others } = port.properties
  const optional = Object.fromEntries(Object.entries(others).map(([name, schema]) => [name, Type.Optional(schema)]))
  const given = closedSchema(`${port.$id}Input`, `${port.description}`, { port_number, ...optional })
  const description = 'All its ports; they replace the current ones'
  return {
    shown: Type.Array(port, { maxItems: maxPorts, description: 'Its ports' }),
    input: Type.Unsafe<(Partial<Static<TObject<P>>> & { port_number: number })[]>(
      Type.Array(given, { maxItems: maxPorts, description }),
    ),
  }
}

/** The ports of a node, from its `ports_mapping`. */
export function mappedShapes({ ports_mapping }: Readonly<Record<string, unknown>>): readonly PortShape[] {
  const ports = Array.isArray(ports_mapping) ? (ports_mapping as { port_number: number; name: string }[]) : []
  return ports.map(({ port_number, name }) => ({ adapter: 0, port: port_number, name }))
}
