import { Adoption } from './adopt.ts'
import { Inventories } from './inventories.ts'
import { Opening } from './open.ts'
import type { RecoveryOptions } from './options.ts'
import { Reaper } from './reap.ts'
import { Reconciliation } from './reconcile.ts'

/**
 * Brings the nodes of the service before back: opens them from their records, takes their states from the keepers, ends what belongs to
 * no node, and does the same again when keepers fall silent or die.
 */
export function createRecovery(options: RecoveryOptions) {
  const inventories = new Inventories(options)
  const adoption = new Adoption(options)
  const reaper = new Reaper(options, inventories, () => reconciliation.retryLater())
  const parts = { inventories, adoption, reaper }
  const reconciliation: Reconciliation = new Reconciliation(options, parts)
  return { opening: new Opening(options, parts), reaper, reconciliation }
}
