import { commands } from '../editing/commands.ts'
import { Dialog } from '../parts/dialog.tsx'

const arrows: Readonly<Record<string, string>> = { Left: '←', Right: '→', Up: '↑', Down: '↓' }
const keyText = (key: string): string => key.replace(/Arrow(\w+)/, (_, way: string) => arrows[way] ?? way)

/** All keys. */
export const KeysDialog = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" isWide onClose={onClose}>
    <dl class="keys is-all" tabIndex={0}>
      {commands
        .filter(({ keys }) => keys !== undefined)
        .map(({ id, title, keys }) => (
          <div key={id}>
            <dt>
              {keys?.map((key) => (
                <kbd key={key}>{keyText(key)}</kbd>
              ))}
            </dt>
            <dd>{title}</dd>
          </div>
        ))}
    </dl>
    <p class="muted">
      On the map: the wheel scrolls, with Ctrl it zooms; the right mouse button moves the map; Shift adds to the
      selection.
    </p>
    <div class="row form-actions">
      <button type="button" class="is-main" autofocus onClick={onClose}>
        Close
      </button>
    </div>
  </Dialog>
)
