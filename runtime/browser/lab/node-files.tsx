import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { LabNode } from '../../../src/client/patchbay.ts'
import { path as pathOf } from '../../../src/compute/remote/paths.ts'
import { counted } from '../parts/counted.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { sizeText } from '../parts/size-text.ts'
import { client } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'
import { mayEdit } from '../state/session.ts'

/** Files that are shown. */
const maxFiles = 200

interface StoredFile {
  readonly path: string
  readonly size?: number
}

/** The files of a node at its compute: a list, downloads and uploads. */
export function NodeFiles({ node: { project_id, node_id, name } }: { node: LabNode }) {
  const files = useSignal<readonly StoredFile[] | undefined>(undefined)
  const failure = useSignal('')
  const input = useRef<HTMLInputElement>(null)
  const params = { project_id, node_id }
  const read = async () => {
    failure.value = ''
    try {
      files.value = await client.call('GET /v2/projects/{project_id}/nodes/{node_id}/files', { params })
    } catch (error) {
      failure.value = messageOf(error)
    }
  }
  useEffect(() => void read(), [node_id])
  const send = async (chosen: readonly File[]) => {
    try {
      for (const file of chosen)
        await client.call('POST /v2/projects/{project_id}/nodes/{node_id}/files/{path}', {
          params: { ...params, path: file.name },
          body: file,
        })
      await read()
    } catch (error) {
      failure.value = messageOf(error)
    }
  }
  const shown = files.value?.toSorted((a, b) => a.path.localeCompare(b.path, 'en', { numeric: true })) ?? []
  const addressOf = (path: string) => {
    const segments = path.split('/').map((segment) => pathOf`/${segment}`)
    return pathOf`/v2/projects/${project_id}/nodes/${node_id}/files` + segments.join('')
  }
  return (
    <div class="node-files">
      {files.value?.length === 0 && <p class="muted">No files yet.</p>}
      <ul aria-label={`Files of ${name}`}>
        {shown.slice(0, maxFiles).map(({ path, size }) => (
          <li key={path}>
            <a href={addressOf(path)} download={path.slice(path.lastIndexOf('/') + 1)}>
              <bdi>{path}</bdi>
            </a>
            <span class="muted">{size === undefined ? '' : sizeText(size)}</span>
          </li>
        ))}
      </ul>
      {shown.length > maxFiles && <p class="muted">{counted(shown.length - maxFiles, 'more file')}.</p>}
      <ErrorMessage text={failure.value} />
      <div class="row">
        {mayEdit() && (
          <>
            <input
              ref={input}
              type="file"
              multiple
              hidden
              aria-label="Files to add"
              onChange={({ currentTarget }) => {
                const chosen = [...(currentTarget.files ?? [])]
                currentTarget.value = ''
                void send(chosen)
              }}
            />
            <button type="button" onClick={() => input.current?.click()}>
              <Icon name="plus" /> Add files
            </button>
          </>
        )}
        <span class="spacer" />
        <IconButton icon="reload" title="Read the list again" onClick={() => void read()} />
      </div>
    </div>
  )
}
