import { useSignal } from '@preact/signals'
import { type LabNode, PatchbayError } from '../../../src/client/patchbay.ts'
import { mapSvg } from '../canvas/map-svg.ts'
import { isBuiltIn, symbolUrl } from '../canvas/symbols.tsx'
import type { LabWindow } from '../editing/lab-window.ts'
import { LabDialog } from '../labs/lab-dialog.tsx'
import { LabList } from '../labs/lab-list.ts'
import { Dialog } from '../parts/dialog.tsx'
import { saveFile } from '../parts/downloads.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { themeColours } from '../parts/theme-colours.ts'
import { client, send } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'

/** Saves a lab: as a lab file, or with its disks as an archive, which import on the list of labs takes; or its map as a picture. */
export function ExportDialog({ window: lab }: { window: LabWindow }) {
  const failure = useSignal('')
  const mustStop = useSignal(false)
  const isSaving = useSignal(false)
  const { value: project } = lab.editor.store.project
  if (project === undefined) return null
  const list = new LabList(client)
  const close = () => {
    lab.dialog.value = undefined
  }
  if (mustStop.value) return <LabDialog open={{ kind: 'export', lab: project }} list={list} onClose={close} />
  const save = async (get: () => Promise<void>) => {
    isSaving.value = true
    try {
      await get()
      close()
    } catch (error) {
      // A disk that a running node writes to cannot be copied.
      if (error instanceof PatchbayError && error.code === 'node-running') mustStop.value = true
      else failure.value = messageOf(error)
    } finally {
      isSaving.value = false
    }
  }
  const saveLabFile = async () => {
    const { project_id, name } = project
    const options = { params: { project_id }, query: { format: 'yaml' } } as const
    const answer = await client.answer('GET /v2/projects/{project_id}/topology', options)
    saveFile(`${name}.lab.yaml`, new Blob([await answer.text()], { type: 'application/yaml' }))
  }
  const saveMap = async () => {
    const svg = await mapOf(lab)
    saveFile(`${project.name}.svg`, new Blob([svg], { type: 'image/svg+xml' }))
  }
  const kinds = [
    ['Lab file', 'nodes, links, settings and configurations as text (YAML)', saveLabFile],
    [
      'Archive',
      'the lab with all files and disks (.gns3project); its nodes must be stopped',
      () => list.export(project),
    ],
    ['SVG', 'the map as a picture for documents, in light colours', saveMap],
  ] as const
  return (
    <Dialog title="Export the lab" onClose={close}>
      <dl class="exports">
        {kinds.map(([title, text, get]) => (
          <div key={title}>
            <dt>
              <button type="button" disabled={isSaving.value} onClick={() => void save(get)}>
                <Icon name="download" /> {title}
              </button>
            </dt>
            <dd class="muted">{text}</dd>
          </div>
        ))}
      </dl>
      <ErrorMessage text={failure.value} />
      <div class="row form-actions">
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}

/** The map of a lab as an SVG document. */
async function mapOf({ editor, hasLabels }: LabWindow): Promise<string> {
  const { store } = editor
  const nodes = store.nodes.values()
  const symbols = new Map<string, string>()
  for (const symbol of new Set(nodes.map((it) => editor.symbolOf(it)))) {
    if (isBuiltIn(symbol)) continue
    const answer = await send(symbolUrl(symbol), {})
    if (answer.ok) symbols.set(symbol, await answer.text())
  }
  const { of: colour, end } = themeColours('light')
  const contents = { nodes, links: store.links.values(), drawings: store.drawings.values(), symbols, colour }
  const title = store.project.value?.name ?? ''
  const symbolOf = (it: LabNode) => editor.symbolOf(it)
  const svg = mapSvg({ ...contents, title, hasPortNames: hasLabels.value, hasStates: true, symbolOf })
  end()
  return svg
}
