import { commands } from './commands.ts'
import type { LabWindow } from './lab-window.ts'

const arrows: Readonly<Record<string, string>> = { Left: '←', Right: '→', Up: '↑', Down: '↓' }
/** A key as it is shown, such as `←`. */
export const keyText = (key: string): string => key.replace(/Arrow(\w+)/, (_, way: string) => arrows[way] ?? way)

/** The keys of all commands; of those that a lab has. */
export const KeyList = ({ window: lab }: { window?: LabWindow }) => (
  <>
    {/* It may be longer than the dialog: keys scroll it. */}
    <dl class="keys is-all" tabIndex={0} aria-label="Keys">
      {commands
        .filter(({ keys, isThere }) => keys !== undefined && (lab === undefined || (isThere?.(lab) ?? true)))
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
      On the map: the wheel scrolls, with Ctrl it zooms; the space bar with a drag, the middle and the right mouse
      button move the map; Shift adds to the selection. A right click opens a menu.
    </p>
  </>
)
