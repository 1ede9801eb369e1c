import type { HostAgent } from '../host-agent.ts'
import { type Action, namedAction } from '../kinds/kind.ts'
import { kindOf } from '../kinds/node.ts'
import type { Connection } from './connection.ts'
import { nodePath } from './nodes.ts'
import { search } from './paths.ts'

/** The actions of kinds, on nodes and on the compute, by the endpoints that their descriptors declare. */
export function remoteActions(connection: Connection): {
  ofNodes: HostAgent['nodes']['action']
  ofCompute: HostAgent['host']['action']
} {
  const run = async (
    actions: Readonly<Record<string, Action>> | undefined,
    base: string,
    name: string,
    input: unknown,
    signal?: AbortSignal,
  ) => {
    const action = namedAction(actions, name)
    const { method, path, output, isSlow = false } = action
    const lists = method === 'GET' ? (input as Readonly<Record<string, readonly string[] | undefined>>) : {}
    // A query cannot have a list without items: it would stand for all.
    if (Object.values(lists).some((list) => list?.length === 0)) return []
    const query = Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, list?.join(',')]))
    const call = {
      method,
      path: `${base}/${path}${search(query)}`,
      ...(method === 'POST' && action.input !== undefined && { input }),
      ...(isSlow && { pace: 'work' as const }),
      ...(signal !== undefined && { signal }),
    }
    return output === undefined ? void (await connection.done(call)) : connection.json(output, call)
  }
  return {
    ofNodes: (ref, ...rest) => run(kindOf(ref.kind).actions, nodePath(ref), ...rest),
    ofCompute: (kind, ...rest) => run(kindOf(kind).computeActions, `/v2/compute/${kind}`, ...rest),
  }
}
