import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { PortRef } from '../../../../src/host-agent.ts'
import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import { repeated } from '../../../../src/lib/repeated.ts'
import type { KindNode, Launch, PortWiring } from '../../engine/nodes/kind.ts'
import type { BridgeSpec } from '../../keeper/protocol/protocol.ts'
import type { DriverHost } from '../node-driver.ts'

/** A port of the mapping of a node. */
export type MappedPort = { readonly port_number: number; readonly name: string }

/** The part of the record that mappings have in common. */
export interface MappedProperties<M extends MappedPort> extends Record<string, unknown> {
  readonly ports_mapping: M[]
}

/** The property of a record; `ports`: its default. */
export const mappingOf = <T extends TSchema>(port: T, ports: readonly unknown[]) =>
  Type.Array(port, { default: [...ports] })
export const eightPorts: readonly MappedPort[] = Array.from({ length: 8 }, (_, port_number) => ({
  port_number,
  name: `Ethernet${port_number}`,
}))

/**
 * The common part of kinds whose nodes are bridges of the keeper; a list of the node has their ports. They need no program, and always run
 * unless they are stopped by hand.
 */
export abstract class MappedPortsKind<M extends MappedPort, P extends MappedProperties<M>> {
  readonly stopGraceMs = 1000
  readonly host: DriverHost<P>
  abstract readonly schema: TObject & { readonly static: P }

  constructor(host: DriverHost<P>) {
    this.host = host
  }

  readonly wiring: PortWiring<P> = { bridgePortOf: (_, { port }) => port }

  /** The bridge that the keeper runs. */
  abstract bridgeOf(properties: P): BridgeSpec

  ports({ record }: KindNode<P>): readonly PortRef[] {
    return record.properties.ports_mapping.map(({ port_number }) => ({ adapter: 0, port: port_number }))
  }

  async launch({ record }: KindNode<P>): Promise<Launch> {
    return { command_line: '', run: this.bridgeOf(record.properties) }
  }

  async duplicate({ record: source }: KindNode<P>, { record }: KindNode<P>, copy: () => Promise<void>): Promise<void> {
    await copy()
    record.properties = source.properties
  }

  /** The ports as they are given, with their defaults; 400 for a number or a name twice. */
  mapping<I extends { readonly port_number: number; readonly name?: string }>(
    ports: readonly I[],
    defaults: Omit<M, 'port_number' | 'name'>,
  ): M[] {
    for (const member of ['port_number', 'name'] as const) {
      const twice = repeated(ports.flatMap(({ [member]: value }) => (value === undefined ? [] : [value])))
      if (twice !== undefined) throw badRequest(`ports_mapping: ${JSON.stringify(twice)} is the ${member} of two ports`)
    }
    return ports.map((port) => ({ name: `Ethernet${port.port_number}`, ...defaults, ...port }) as unknown as M)
  }

  /** Sets the properties of a node; a running node changes in place. */
  async change({ key, record, status }: KindNode<P>, properties: P): Promise<void> {
    if (status !== 'stopped') await this.host.keeper.call('unit.configure', { key, run: this.bridgeOf(properties) })
    record.properties = properties
  }
}
