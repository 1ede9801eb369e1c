import { existsSync } from 'node:fs'
import type { Check } from '../../../src/model/host.ts'
import { KeeperClient } from '../keeper/client.ts'
import { hasKeeper, keeperDirectory, otherKeeperDirectories } from '../keeper/generation.ts'

/** How long a keeper may take to say what it holds, ms. */
const inventoryMs = 5000

/** The processes that hold nodes: which there are, and whether they answer. */
export async function keeperCheck(data: string): Promise<Check> {
  const directories = [keeperDirectory(data), ...otherKeeperDirectories(data)].filter((it) => existsSync(it))
  const found: string[] = []
  let trouble: string | undefined
  let isForeign = false
  for (const directory of directories) {
    if (!(await hasKeeper(directory))) continue
    try {
      const client = await KeeperClient.open(directory)
      const isOwn = directory === keeperDirectory(data)
      isForeign ||= !client.isFull
      try {
        const { units } = await client.call('inventory', {}, inventoryMs)
        const nodes = `${units.filter(({ exit }) => exit === null).length} nodes run`
        found.push(isOwn ? nodes : `${nodes} in one of ${client.version}, which ends with the last of them`)
      } finally {
        client.disconnect()
      }
    } catch (error) {
      trouble = `${directory}: ${(error as Error).message}`
      found.push(trouble)
    }
  }
  const text = found.length === 0 ? 'none runs: the service starts it' : found.join('; ')
  if (trouble !== undefined) {
    const fix = 'it is not known what runs: have it go on (kill -CONT), or run the version of Patchbay that started it'
    return { name: 'keeper', status: 'error', found: text, fix }
  }
  if (isForeign) {
    const fix = 'links of its nodes cannot be changed: stop and start those nodes, or run that version of Patchbay'
    return { name: 'keeper', status: 'warning', found: text, fix }
  }
  return { name: 'keeper', status: 'ok', found: text, fix: null }
}
