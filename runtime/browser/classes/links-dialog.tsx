import type { ClassLink } from '../../../src/client/patchbay.ts'
import { CopyButton } from '../parts/copy-button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { saveFile } from '../parts/downloads.ts'
import { Icon } from '../parts/icon.tsx'
import { OpenService } from '../parts/open-service.tsx'
import { StackedTable } from '../parts/stacked-table.tsx'
import { timeText } from '../parts/time-text.ts'
import { isOpen, session } from '../state/session.ts'
import { addressOf, linksCsv, linksText } from './links-text.ts'

interface LinksProps {
  readonly className: string
  readonly links: readonly ClassLink[]
  readonly onClose: () => void
}

/** New links, which are shown this once. What is printed is a row a student, and nothing else of the page. */
export function LinksDialog({ className, links, onClose }: LinksProps) {
  const ends = links[0]?.expires_at
  return (
    <Dialog title={`Links of the class ${className}`} isWide isFirm onClose={onClose}>
      <div class="class-links">
        <p class="for-screen">
          Give each student the link: it opens the lab without a password{ends != null && `, until ${timeText(ends)}`}.
          Keep them now, as they are not shown again; a new link can be made at any time.
        </p>
        {isOpen(session.value) && (
          <OpenService>
            This service asks nobody for a token, so that the links open the labs and restrict nobody: who reaches the
            service may do everything. To change that, make a token with the role admin, and start the service again by
            this line.
          </OpenService>
        )}
        <StackedTable
          columns={['Student', 'Link']}
          rows={links.map((link) => ({
            key: link.project_id,
            cells: [<bdi>{link.student}</bdi>, <code>{addressOf(link)}</code>],
            actions: <CopyButton text={addressOf(link)} what={`the link of ${link.student}`} />,
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
            onClick={() => saveFile(`${className}.csv`, new Blob([linksCsv(links)], { type: 'text/csv' }))}
          >
            <Icon name="download" /> CSV
          </button>
          <CopyButton text={linksText(links)} what="all links" label="Copy all" />
        </div>
      </div>
    </Dialog>
  )
}
