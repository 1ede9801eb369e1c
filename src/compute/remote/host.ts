import { Type } from '@sinclair/typebox'
import type { HostFacts } from '../../host-agent.ts'
import { Capabilities, NetworkInterface, Ports } from '../../model/host.ts'
import { namedAction } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import type { Connection } from './connection.ts'
import { search } from './paths.ts'

const interfaces = Type.Array(NetworkInterface)

/** What is asked of all computes about their hosts. */
export type RemoteHost = Pick<HostFacts, 'capabilities' | 'interfaces' | 'ports' | 'action'>

export const remoteHost = (connection: Connection): RemoteHost => ({
  capabilities: () => connection.json(Capabilities, { method: 'GET', path: '/v2/compute/capabilities?view=full' }),
  interfaces: () => connection.json(interfaces, { method: 'GET', path: '/v2/compute/network/interfaces' }),
  ports: () => connection.json(Ports, { method: 'GET', path: '/v2/compute/network/ports' }),
  async action(kind, name, input, signal) {
    const action = namedAction(kindOf(kind).computeActions, name)
    const { method, path, output, isSlow = false } = action
    const lists = method === 'GET' ? (input as Readonly<Record<string, readonly string[] | undefined>>) : {}
    // A query cannot have a list without items: it would stand for all.
    if (Object.values(lists).some((list) => list?.length === 0)) return []
    const query = Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, list?.join(',')]))
    const call = {
      method,
      path: `/v2/compute/${kind}/${path}${search(query)}`,
      ...(method === 'POST' && action.input !== undefined && { input }),
      ...(isSlow && { pace: 'work' as const }),
      ...(signal !== undefined && { signal }),
    }
    return output === undefined ? void (await connection.done(call)) : connection.json(output, call)
  },
})
