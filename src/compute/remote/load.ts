import { Check } from '@sinclair/typebox/value'
import { Load } from '../../model/host.ts'
import { readJson } from './answer.ts'
import type { Send } from './transport.ts'

const maxBytes = 4096

/** The load of a compute; undefined when it does not report it. */
export async function askLoad(send: Send, signal: AbortSignal): Promise<Load | undefined> {
  const path = '/v2/compute/load'
  const response = await send({ method: 'GET', path, headers: { Accept: 'application/json' }, body: null, signal })
  const said = await readJson(response, maxBytes)
  return response.status === 200 ? loadIn(said) : undefined
}

/** The load in an answer of a compute; undefined without one. */
export function loadIn(said: unknown): Load | undefined {
  if (!Check(Load, said)) return undefined
  return { cpu_usage_percent: said.cpu_usage_percent, memory_usage_percent: said.memory_usage_percent }
}
