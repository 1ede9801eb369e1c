import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { CallName, Compute, Image, ImageUse, LabKind, LabProject } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { compareText } from '../../../src/lib/text/compare-text.ts'
import { NodeTypeDialog } from '../node-types/node-type-dialog.tsx'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { ErrorMessage } from '../parts/error-message.tsx'
import { useFileDrop } from '../parts/file-drop.ts'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { ImageUpload } from '../parts/image-upload.ts'
import { imageSizeText, sizeText } from '../parts/size-text.ts'
import { StackedTable } from '../parts/stacked-table.tsx'
import { TextField } from '../parts/text-field.tsx'
import { client } from '../state/client.ts'
import { notifyError } from '../state/notices.ts'
import { labPath } from '../state/route.ts'
import { mayEdit } from '../state/session.ts'
import { listComputes } from './computes.ts'

type KindOf<T> = T extends `GET /v2/compute/${infer K}/images` ? K : never
/** A kind whose nodes start from images. */
type ImageKind = KindOf<CallName>

/** The uploads since the page was opened: they go on while another screen is shown. */
const uploads = signal<readonly { readonly kind: ImageKind; readonly upload: ImageUpload }[]>([])

/** The labs and computes whose ids are in the uses of images. */
interface LabsAndComputes {
  readonly labs: readonly LabProject[]
  readonly computes: readonly Compute[]
}

/** The images of each kind: a list, uploads, new names, and deletion. */
export function ImagesScreen() {
  const kinds = useSignal<readonly (LabKind & { name: ImageKind })[]>([])
  const known = useSignal<LabsAndComputes>({ labs: [], computes: [] })
  useEffect(() => {
    Promise.all([client.call('GET /v2/projects'), listComputes()])
      .then(([labs, computes]) => {
        known.value = { labs, computes }
      })
      .catch(notifyError)
    client
      .call('GET /v2/kinds')
      .then((all) => {
        kinds.value = all.filter((kind): kind is LabKind & { name: ImageKind } => kind.has_images)
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
        <ImagesOf key={kind.name} kind={kind.name} title={kind.title} known={known.value} />
      ))}
    </>
  )
}

function ImagesOf({ kind, title, known }: { kind: ImageKind; title: string; known: LabsAndComputes }) {
  const images = useSignal<readonly Image[] | undefined>(undefined)
  const uses = useSignal<ReadonlyMap<string, ImageUse>>(new Map())
  const gone = useSignal<Image | undefined>(undefined)
  const renamed = useSignal<Image | undefined>(undefined)
  /** The image of which a node type is made. */
  const used = useSignal<Image | undefined>(undefined)
  /** Files with the names of images that are there. */
  const twice = useSignal<readonly File[]>([])
  const section = useRef<HTMLElement>(null)
  const read = () =>
    client
      .call(`GET /v2/compute/${kind}/images`)
      .then((list) => {
        // A gateway has the lists of its computes one after the other.
        images.value = list.toSorted((a, b) => compareText(a.path, b.path))
      })
      .catch(notifyError)
  const readUses = () =>
    client
      .call(`GET /v2/compute/${kind}/image_uses`)
      .then((list) => {
        uses.value = new Map(list.map((use) => [use.path, use]))
      })
      .catch(ignore('the images are shown without their uses'))
  useEffect(() => {
    void read()
    void readUses()
  }, [kind])
  const begin = (file: File) => {
    const upload = new ImageUpload(kind, file)
    const before = uploads.value.find((other) => other.kind === kind && other.upload.name === file.name)
    before?.upload.pause()
    uploads.value = [...uploads.value.filter((other) => other !== before), { kind, upload }]
    void run(upload)
  }
  const addFiles = (files: Iterable<File> | null | undefined) => {
    const all = [...(files ?? [])]
    const isThere = ({ name }: File) => images.value?.some(({ path }) => path === name) === true
    for (const file of all) if (!isThere(file)) begin(file)
    twice.value = all.filter(isThere)
  }
  const { isOver, handlers } = useFileDrop(addFiles)
  const run = async (upload: ImageUpload) => {
    await upload.run()
    await Promise.all([read(), readUses()])
    if (upload.state.value !== 'done') return
    if (images.value?.some(({ path }) => path === upload.name) !== false) forget(upload)
    else upload.reason.value = `It is stored, but it is not an image for ${kind} nodes: they cannot start from it.`
  }
  const changed = async (change: Promise<unknown>) => {
    try {
      await change
    } finally {
      await Promise.all([read(), readUses()])
    }
  }
  const remove = ({ path }: Pick<Image, 'path'>) =>
    changed(client.call(`DELETE /v2/compute/${kind}/images/{filename}`, { params: { filename: path } }))
  const rename = async ({ path }: Image, to: string) => {
    const body = { path: to }
    await changed(client.call(`PUT /v2/compute/${kind}/images/{filename}`, { params: { filename: path }, body }))
    // The button that opened the dialog is gone with the old name. This is done when the dialog is closed.
    setTimeout(() => {
      const buttons = [...(section.current?.querySelectorAll('button') ?? [])]
      buttons.find(({ title }) => title === `Rename ${to}`)?.focus()
    })
  }
  const own = uploads.value.filter((it) => it.kind === kind)
  return (
    // Files are dropped here; the button below does the same.
    <section ref={section} class={isOver.value ? 'images is-over' : 'images'} {...handlers}>
      <div class="row">
        <h3>
          {title} <small>{kind}</small>
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
                addFiles(event.currentTarget.files)
                event.currentTarget.value = ''
              }}
            />
          </label>
        )}
      </div>
      {own.map(({ upload }) => (
        <UploadView
          key={upload.name}
          upload={upload}
          onAgain={() => void run(upload)}
          onDelete={() => void remove({ path: upload.name }).then(() => forget(upload), notifyError)}
        />
      ))}
      {images.value?.length === 0 && own.length === 0 && <p class="muted">No images.</p>}
      {images.value !== undefined && images.value.length > 0 && (
        <StackedTable
          columns={['Name', 'Size', 'SHA-256', 'Used by', ...(known.computes.length > 1 ? ['On'] : [])]}
          rows={images.value.map((image) => ({
            key: image.path,
            cells: [
              <bdi>{image.path}</bdi>,
              <span>{imageSizeText(image)}</span>,
              <code title={image.sha256}>{image.sha256?.slice(0, 12) ?? ''}</code>,
              <Users use={uses.value.get(image.path)} labs={known.labs} />,
              <bdi>{computeNames(uses.value.get(image.path), known.computes)}</bdi>,
            ].slice(0, known.computes.length > 1 ? 5 : 4),
            actions: mayEdit() && (
              <>
                <IconButton
                  icon="plus"
                  title={`Make a node type of ${image.path}`}
                  onClick={() => {
                    used.value = image
                  }}
                />
                <IconButton
                  icon="pencil"
                  title={`Rename ${image.path}`}
                  onClick={() => {
                    renamed.value = image
                  }}
                />
                <IconButton
                  icon="trash"
                  title={`Delete ${image.path}`}
                  onClick={() => {
                    gone.value = image
                  }}
                />
              </>
            ),
          }))}
        />
      )}
      {twice.value.length > 0 && (
        <ActionDialog
          title={twice.value.length === 1 ? 'Replace the image?' : `Replace ${twice.value.length} images?`}
          verb="Replace"
          isDanger
          onSend={async () => twice.value.forEach(begin)}
          onClose={() => {
            twice.value = []
          }}
        >
          <p>Disks of nodes are overlays of the image, and are unusable on top of other content.</p>
          <ul>
            {twice.value.map(({ name }) => (
              <li key={name}>
                <b>
                  <bdi>{name}</bdi>
                </b>
                , used by: <Users use={uses.value.get(name)} labs={known.labs} />
              </li>
            ))}
          </ul>
        </ActionDialog>
      )}
      {used.value !== undefined && (
        <NodeTypeDialog
          image={{ kind, path: used.value.path }}
          onChanged={() => {}}
          onClose={() => {
            used.value = undefined
          }}
        />
      )}
      {renamed.value !== undefined && (
        <RenameDialog
          image={renamed.value}
          onSend={rename}
          onClose={() => {
            renamed.value = undefined
          }}
        />
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
            is deleted. The service refuses this while a node of an open lab needs the image.
          </p>
        </ActionDialog>
      )}
    </section>
  )
}

interface RenameProps {
  readonly image: Image
  /** `to`: the new name, with the directory of the image. */
  readonly onSend: (image: Image, to: string) => Promise<void>
  readonly onClose: () => void
}

/** Asks for the new name of an image, which stays in its directory. */
function RenameDialog({ image, onSend, onClose }: RenameProps) {
  const { path, filename } = image
  const name = useSignal(filename)
  const to = path.slice(0, path.length - filename.length) + name.value.trim()
  return (
    <ActionDialog
      title="Rename the image"
      verb="Rename"
      isReady={to !== path}
      onSend={() => onSend(image, to)}
      onClose={onClose}
    >
      <p>
        The service refuses this while a node of an open lab needs the image. Closed labs and templates still refer to{' '}
        <bdi>{path}</bdi>.
      </p>
      <TextField id="image-name" title="Name" value={name} />
    </ActionDialog>
  )
}

/** Most names of nodes that are shown of a lab. */
const mostNames = 5

/** The nodes that need an image, by their labs. */
function Users({ use, labs }: { use: ImageUse | undefined; labs: readonly LabProject[] }) {
  if (use?.used_by === undefined) return <span class="muted">not known</span>
  if (use.used_by.length === 0) return <span class="muted">no open lab</span>
  return (
    <ul>
      {use.used_by.map(({ project_id, nodes }) => {
        const lab = labs.find((known) => known.project_id === project_id)
        const more = nodes.length - mostNames
        return (
          <li key={project_id}>
            {lab === undefined ? (
              <code>{project_id.slice(0, 8)}</code>
            ) : (
              <a href={labPath(lab.name)}>
                <bdi>{lab.name}</bdi>
              </a>
            )}
            : <bdi>{nodes.slice(0, mostNames).join(', ')}</bdi>
            {more > 0 && ` and ${more} more`}
          </li>
        )
      })}
    </ul>
  )
}

/** On which computes an image is. */
function computeNames(use: ImageUse | undefined, computes: readonly Compute[]): string {
  if (use?.compute_ids === undefined) return 'not known'
  const ids = new Set(use.compute_ids)
  const [those, others] = [true, false].map((has) => computes.filter(({ compute_id }) => ids.has(compute_id) === has))
  return others?.length === 0 ? 'all' : (those ?? []).map(({ name }) => name).join(', ')
}

const forget = (upload: ImageUpload): void => {
  uploads.value = uploads.value.filter((other) => other.upload !== upload)
}

interface UploadProps {
  readonly upload: ImageUpload
  readonly onAgain: () => void
  /** Deletes the file from the service, where no list has it. */
  readonly onDelete: () => void
}

function UploadView({ upload, onAgain, onDelete }: UploadProps) {
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
      {state === 'done' && upload.reason.value !== '' && (
        <button type="button" onClick={onDelete}>
          <Icon name="trash" /> Delete the file
        </button>
      )}
      {state !== 'running' && (
        <IconButton icon="close" title={`Forget the upload of ${name}`} onClick={() => forget(upload)} />
      )}
      {state !== 'done' && <progress value={stored} max={Math.max(1, total)} aria-label={`Upload of ${name}`} />}
      <ErrorMessage text={upload.reason.value} />
    </div>
  )
}
