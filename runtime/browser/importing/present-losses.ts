import type { LossView } from './file-import.ts'
import type { NodeRow } from './node-rows.ts'

const cannotRun = /the node cannot run here$/

/** What was left out, as it is true now: a node that was replaced, or whose image came, can run. */
export const presentLosses = (losses: readonly LossView[], rows: readonly NodeRow[]): LossView[] =>
  losses.map((loss) => {
    const isOver = rows.some(({ name, reason }) => reason === undefined && loss.path.split('.').includes(name))
    return isOver
      ? { ...loss, message: loss.message.replace(cannotRun, 'the node could not run when this was read') }
      : loss
  })
