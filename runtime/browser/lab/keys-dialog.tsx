import { KeyList } from '../editing/key-list.tsx'
import { Dialog } from '../parts/dialog.tsx'

/** All keys. */
export const KeysDialog = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" isWide onClose={onClose}>
    <KeyList />
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
