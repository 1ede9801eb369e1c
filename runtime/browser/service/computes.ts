import type { Compute } from '../../../src/client/patchbay.ts'
import { client } from '../state/client.ts'

/** The computes of the fleet, by name. */
export async function listComputes(): Promise<Compute[]> {
  const all = await client.call('GET /v2/computes')
  return all.toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }))
}
