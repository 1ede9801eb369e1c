import type { LabNode } from '../../../src/client/patchbay.ts'
import { plainReason } from '../editing/job-text.ts'
import { Icon } from '../parts/icon.tsx'

/** Why a node is not what it was asked to be, if so. */
export const Trouble = ({ node: { status_reason: reason } }: { node: LabNode }) =>
  reason === null ? null : (
    <p class="reason">
      <Icon name="warning" /> <span dir="auto">{plainReason(reason)}</span>
    </p>
  )
