import { KeyList } from '../editing/key-list.tsx'
import type { LabWindow } from '../editing/lab-window.ts'
import { Dialog } from '../parts/dialog.tsx'

/** All keys. */
export const KeysDialog = ({ window: lab, onClose }: { window: LabWindow; onClose: () => void }) => (
  <Dialog title="Keys" isWide onClose={onClose}>
    <KeyList window={lab} />
    <div class="row form-actions">
      <button type="button" class="is-main" autofocus onClick={onClose}>
        Close
      </button>
      <a class="button" href="#/settings">
        Settings
      </a>
    </div>
  </Dialog>
)
