import type { Action } from '../../model/kinds/kind.ts'
import type { Call, Connection } from './connection.ts'
import { search } from './paths.ts'

/** Runs an action of a kind, on a node or on a compute, whose path is `base`. */
export async function runAction(
  connection: Connection,
  { method, path, input: schema, output, isSlow = method === 'POST' }: Action,
  { base, input, signal }: { base: string; input: unknown; signal: AbortSignal | undefined },
): Promise<unknown> {
  const lists = method === 'GET' ? (input as Readonly<Record<string, readonly string[] | undefined>>) : {}
  // A query cannot have a list without items: it would stand for all.
  if (Object.values(lists).some((list) => list?.length === 0)) return []
  const query = Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, list?.join(',')]))
  const call: Call = {
    method,
    path: `${base}/${path}${search(query)}`,
    ...(method === 'POST' && schema !== undefined && { input }),
    ...(isSlow && { pace: 'work' }),
    ...(signal !== undefined && { signal }),
  }
  return output === undefined ? void (await connection.done(call)) : connection.json(output, call)
}
