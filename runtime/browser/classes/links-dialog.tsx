import { useSignal } from '@preact/signals'
import type { ClassLink } from '../../../src/client/patchbay.ts'
import { CopyButton } from '../parts/copy-button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { saveFile } from '../parts/downloads.ts'
import { Icon } from '../parts/icon.tsx'
import { OpenService } from '../parts/open-service.tsx'
import { StackedTable } from '../parts/stacked-table.tsx'
import { timeText } from '../parts/time-text.ts'
import { addressOf, isAtThisComputer, linksCsv, linksText } from './links-text.ts'

interface LinksProps {
  readonly className: string
  readonly links: readonly ClassLink[]
  readonly onClose: () => void
}

/** New links, which are shown this once. What is printed is a row a student, and nothing else of the page. */
export function LinksDialog({ className, links, onClose }: LinksProps) {
  const ends = links[0]?.expires_at
  /** What the links begin with. */
  const origin = useSignal(location.origin)
  return (
    <Dialog title={`Links of the class ${className}`} isWide isFirm onClose={onClose}>
      <div class="class-links">
        <p class="for-screen">
          Give each student the link: it opens the lab without a password{ends != null && `, until ${timeText(ends)}`}.
          Keep them now, as they are not shown again; a new link can be made at any time.
        </p>
        <OpenService>
          The links open the labs and restrict nobody, until there is a token with the role admin and the service is
          started again by this line. The links stay the same.
        </OpenService>
        {isAtThisComputer(location.hostname) && (
          <div class="field address">
            <label for="links-address">Address of this computer, as students reach it</label>
            <input
              id="links-address"
              type="url"
              autocomplete="off"
              spellcheck={false}
              aria-describedby="links-address-help"
              value={origin.value}
              onInput={({ currentTarget }) => {
                origin.value = currentTarget.value.trim().replace(/\/+$/, '')
              }}
            />
            <p id="links-address-help" class="help">
              {location.hostname} leads students at other computers to their own. Put the name or the address of this
              one in its place, such as http://192.168.1.20:{location.port}: the links below follow.
            </p>
          </div>
        )}
        <StackedTable
          columns={['Student', 'Link']}
          rows={links.map((link) => ({
            key: link.project_id,
            cells: [<bdi>{link.student}</bdi>, <code>{addressOf(link, origin.value)}</code>],
            actions: <CopyButton text={addressOf(link, origin.value)} what={`the link of ${link.student}`} />,
          }))}
        />
        <div class="row form-actions">
          <button type="button" class="is-main" onClick={onClose}>
            Done
          </button>
          <button type="button" onClick={() => print()}>
            Print
          </button>
          <button
            type="button"
            onClick={() =>
              saveFile(`${className}.csv`, new Blob([linksCsv(links, origin.value)], { type: 'text/csv' }))
            }
          >
            <Icon name="download" /> CSV
          </button>
          <CopyButton text={linksText(links, origin.value)} what="all links" label="Copy all" />
        </div>
      </div>
    </Dialog>
  )
}
