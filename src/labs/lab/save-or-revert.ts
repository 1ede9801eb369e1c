import { Revert } from '../../lib/revert.ts'
import type { Lab } from './lab.ts'

/**
 * Saves in the document what computes have done already. When the save fails, as on a full disk, `undo` reverts that on the computes, and
 * the result rejects with the failure of the save. A failure of `undo` is reported in the feed of the lab.
 */
export async function saveOrRevert<T>(lab: Lab, save: () => Promise<T>, undo: () => Promise<unknown>): Promise<T> {
  await using revert = new Revert(({ message }) => {
    const what = 'A change was not saved, and could not be reverted on its compute'
    lab.emit({ action: 'log.warning', event: { message: `${what}: ${message}` } })
  })
  revert.add(undo)
  const saved = await save()
  revert.commit()
  return saved
}
