import { signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { CallName, Image, LabKind } from '../../../src/client/patchbay.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { Fault } from '../parts/fault.tsx'
import { useFileDrop } from '../parts/file-drop.ts'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { ResourceTable } from '../parts/resource-table.tsx'
import { sizeText } from '../parts/size-text.ts'
import { client } from '../state/client.ts'
import { notifyError } from '../state/notices.ts'
import { mayEdit } from '../state/session.ts'
import { Upload } from './upload.ts'

type KindOf<T> = T extends `GET /v2/compute/${infer K}/images` ? K : never
/** A kind whose nodes start from images. */
type ImageKind = KindOf<CallName>

/** The uploads since the page was opened: they go on while another screen is shown. */
const uploads = signal<readonly { readonly kind: ImageKind; readonly upload: Upload }[]>([])

/** The images of each kind: a list, uploads, and deletion. */
export function ImagesScreen() {
  const kinds = useSignal<readonly (LabKind & { name: ImageKind })[]>([])
  useEffect(() => {
    client
      .call('GET /v2/kinds')
      .then((all) => {
        kinds.value = all.filter((it): it is LabKind & { name: ImageKind } => it.has_images)
      })
      .catch(notifyError)
  }, [])
  return (
    <>
      <div class="labs-head">
        <h2>Images</h2>
      </div>
      <p class="muted">Nodes of these kinds start from images. Drop files on a kind, or choose them.</p>
      {kinds.value.map((kind) => (
        <ImagesOf key={kind.name} kind={kind.name} noun={kind.noun} />
      ))}
    </>
  )
}

function ImagesOf({ kind, noun }: { kind: ImageKind; noun: string }) {
  const images = useSignal<readonly Image[] | undefined>(undefined)
  const gone = useSignal<Image | undefined>(undefined)
  const read = () =>
    client
      .call(`GET /v2/compute/${kind}/images`)
      .then((it) => {
        images.value = it
      })
      .catch(notifyError)
  useEffect(() => void read(), [kind])
  const take = (files: Iterable<File> | null | undefined) => {
    for (const file of files ?? []) {
      const upload = new Upload(kind, file)
      const before = uploads.value.find((it) => it.kind === kind && it.upload.name === file.name)
      before?.upload.pause()
      uploads.value = [...uploads.value.filter((it) => it !== before), { kind, upload }]
      void run(upload)
    }
  }
  const { isOver, handlers } = useFileDrop(take)
  const run = async (upload: Upload) => {
    await upload.run()
    await read()
    if (upload.state.value === 'done') forget(upload)
  }
  const remove = async ({ path }: Image) => {
    await client.call(`DELETE /v2/compute/${kind}/images/{filename}`, { params: { filename: path } })
    await read()
  }
  const own = uploads.value.filter((it) => it.kind === kind)
  return (
    // Files are dropped here; the button below does the same.
    <section class={isOver.value ? 'images is-over' : 'images'} {...handlers}>
      <div class="row">
        <h3>
          {kind} <small>{noun}</small>
        </h3>
        <span class="spacer" />
        {mayEdit() && (
          <label class="button">
            <Icon name="plus" /> Add images
            <input
              class="hidden"
              type="file"
              multiple
              onChange={(event) => {
                take(event.currentTarget.files)
                event.currentTarget.value = ''
              }}
            />
          </label>
        )}
      </div>
      {own.map(({ upload }) => (
        <UploadView key={upload.name} upload={upload} onAgain={() => void run(upload)} />
      ))}
      {images.value?.length === 0 && own.length === 0 && <p class="muted">No images.</p>}
      {images.value !== undefined && images.value.length > 0 && (
        <ResourceTable columns={['Name', 'Size', 'SHA-256']} hasActions>
          {images.value.map((image) => (
            <tr key={image.path}>
              <td>
                <bdi>{image.path}</bdi>
              </td>
              <td class="actions">{sizeText(image.filesize)}</td>
              <td>
                <code title={image.sha256}>{image.sha256?.slice(0, 16) ?? ''}</code>
              </td>
              <td class="actions">
                {mayEdit() && (
                  <IconButton
                    icon="trash"
                    title={`Delete ${image.path}`}
                    onClick={() => {
                      gone.value = image
                    }}
                  />
                )}
              </td>
            </tr>
          ))}
        </ResourceTable>
      )}
      {gone.value !== undefined && (
        <ActionDialog
          title="Delete the image?"
          verb="Delete"
          isDanger
          onSend={async () => gone.value && remove(gone.value)}
          onClose={() => {
            gone.value = undefined
          }}
        >
          <p>
            <b>
              <bdi>{gone.value.path}</bdi>
            </b>{' '}
            is deleted. The service refuses it while a node of an open lab needs the image.
          </p>
        </ActionDialog>
      )}
    </section>
  )
}

const forget = (upload: Upload): void => {
  uploads.value = uploads.value.filter((it) => it.upload !== upload)
}

function UploadView({ upload, onAgain }: { upload: Upload; onAgain: () => void }) {
  const { name, total } = upload
  const [state, stored] = [upload.state.value, upload.stored.value]
  return (
    <div class="upload">
      <bdi>{name}</bdi>
      <span class="muted" role="status">
        {state === 'done'
          ? 'stored'
          : `${sizeText(stored)} of ${sizeText(total)}${state === 'paused' ? ', paused' : ''}`}
      </span>
      <span class="spacer" />
      {state === 'running' && (
        <button type="button" onClick={() => upload.pause()}>
          <Icon name="pause" /> Pause
        </button>
      )}
      {(state === 'paused' || state === 'failed') && (
        <button type="button" onClick={onAgain}>
          <Icon name="play" /> Go on
        </button>
      )}
      {state !== 'running' && (
        <IconButton icon="close" title={`Forget the upload of ${name}`} onClick={() => forget(upload)} />
      )}
      {state !== 'done' && <progress value={stored} max={Math.max(1, total)} aria-label={`Upload of ${name}`} />}
      {state === 'failed' && <Fault text={upload.reason.value} />}
    </div>
  )
}
