import { existsSync } from 'node:fs'
import type { DoctorCheck } from '../../../../src/model/host.ts'
import { openKeeper } from '../../keeper/client/launch.ts'
import { hasKeeper, keeperDirectory, otherKeeperDirectories } from '../../keeper/process/generation.ts'
import { error, ok, warning } from '../../os/programs/checks.ts'

/** Timeout of the inventory of a keeper, ms. */
const inventoryMs = 5000

/** Lists the keepers that run, with their nodes, and checks that each one answers. */
export async function keeperCheck(data: string): Promise<DoctorCheck> {
  const directories = [keeperDirectory(data), ...otherKeeperDirectories(data)].filter((it) => existsSync(it))
  const found: string[] = []
  let trouble: string | undefined
  let hasOtherVersion = false
  for (const directory of directories) {
    if (!(await hasKeeper(directory))) continue
    try {
      const client = await openKeeper(directory)
      const isOwn = directory === keeperDirectory(data)
      hasOtherVersion ||= !client.isFull
      try {
        const { units } = await client.call('inventory', {}, inventoryMs)
        const nodes = `${units.filter(({ exit }) => exit === null).length} nodes run`
        found.push(isOwn ? nodes : `${nodes} in a keeper of ${client.version}, which ends with its last node`)
      } finally {
        client.disconnect()
      }
    } catch (cause) {
      // It has ended meanwhile, as one without nodes does.
      if (!(await hasKeeper(directory))) continue
      trouble = `${directory}: ${(cause as Error).message}`
      found.push(trouble)
    }
  }
  const text = found.length === 0 ? 'none runs: the service starts it' : found.join('; ')
  const unknown = 'its nodes are not known: resume it (kill -CONT), or run the version of Patchbay that started it'
  if (trouble !== undefined) return error('keeper', text, unknown)
  const fix = 'links of its nodes cannot be changed: stop and start those nodes, or run that version of Patchbay'
  return hasOtherVersion ? warning('keeper', text, fix) : ok('keeper', text)
}
