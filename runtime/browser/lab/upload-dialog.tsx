import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { LabEditor } from '../editing/lab-editor.ts'
import type { LackedImage } from '../editing/node-jobs.ts'
import { counted } from '../parts/counted.ts'
import { Dialog } from '../parts/dialog.tsx'
import { ErrorMessage } from '../parts/error-message.tsx'
import { useFileDrop } from '../parts/file-drop.ts'
import { Icon } from '../parts/icon.tsx'
import { ImageUpload } from '../parts/image-upload.ts'
import { sizeText } from '../parts/size-text.ts'

interface UploadProps {
  readonly editor: LabEditor
  /** The images that nodes lack; of several nodes the same one. */
  readonly missing: readonly LackedImage[]
}

/** Uploads images that nodes lacked at a start, then starts them again; or one that settings name, then saves these. */
export function UploadDialog({ editor, missing }: UploadProps) {
  const images = [...new Map(missing.map((it) => [`${it.kind}/${it.image}`, it])).values()]
  const uploads = useSignal<ReadonlyMap<LackedImage, ImageUpload>>(new Map())
  const start = useRef<HTMLButtonElement>(null)
  const isReady = images.every((it) => uploads.value.get(it)?.state.value === 'done')
  useEffect(() => {
    if (isReady) start.current?.focus()
  }, [isReady])
  const close = () => {
    for (const upload of uploads.value.values()) upload.pause()
    editor.jobs.missing.value = []
  }
  const give = (image: LackedImage, file: File) => {
    uploads.value.get(image)?.pause()
    // Whatever its name is here: nodes have it under that one.
    const upload = new ImageUpload(image.kind, new File([file], image.image))
    uploads.value = new Map(uploads.value).set(image, upload)
    void upload.run()
  }
  const ids = [...new Set(missing.map(({ node_id }) => node_id))]
  const [first = ''] = ids
  const save = missing[0]?.save
  const what = ids.length === 1 ? editor.store.nodes.get(first)?.name : counted(ids.length, 'node')
  const title = images.length === 1 ? `Upload ${images[0]?.image}` : `Upload ${images.length} images`
  return (
    <Dialog title={title} isFirm onClose={close}>
      {images.map((image, index) => (
        <MissingRow
          key={`${image.kind}/${image.image}`}
          {...{ image, upload: uploads.value.get(image), isFirst: index === 0 && images.length === 1 }}
          onFile={(file) => give(image, file)}
        />
      ))}
      <div class="row form-actions">
        <button
          type="button"
          class="is-main"
          ref={start}
          disabled={!isReady}
          onClick={() => {
            close()
            if (save === undefined) void editor.jobs.act('start', ids)
            else save()
          }}
        >
          {save === undefined ? (
            <>
              <Icon name="play" /> Start {what}
            </>
          ) : (
            'Save the settings'
          )}
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}

interface RowProps {
  readonly image: LackedImage
  readonly upload: ImageUpload | undefined
  /** Whether the files of the user are shown at once. */
  readonly isFirst: boolean
  readonly onFile: (file: File) => void
}

function MissingRow({ image: { image }, upload, isFirst, onFile }: RowProps) {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    // The press that opened the dialog asked for it.
    if (isFirst) input.current?.click()
  }, [])
  const { isOver, handlers } = useFileDrop(([file]) => file !== undefined && onFile(file))
  const state = upload?.state.value
  return (
    <div class={isOver.value ? 'upload is-over' : 'upload'} {...handlers}>
      <b dir="auto">{image}</b>
      <span class="muted" role="status">
        {upload === undefined
          ? 'Drop its file here, or'
          : state === 'done'
            ? 'is uploaded'
            : `${sizeText(upload.stored.value)} of ${sizeText(upload.total)}`}
      </span>
      {state === 'failed' && (
        <button type="button" onClick={() => void upload?.run()}>
          Try again
        </button>
      )}
      {(state === undefined || state === 'failed' || state === 'refused') && (
        <label class="button">
          Choose a file
          <input
            ref={input}
            class="hidden"
            type="file"
            aria-label={`File of ${image}`}
            onChange={(event) => {
              const [file] = event.currentTarget.files ?? []
              if (file !== undefined) onFile(file)
              event.currentTarget.value = ''
            }}
          />
        </label>
      )}
      {state === 'running' && (
        <progress
          value={upload?.stored.value}
          max={Math.max(1, upload?.total ?? 1)}
          aria-label={`Upload of ${image}`}
        />
      )}
      <ErrorMessage text={upload?.reason.value ?? ''} />
    </div>
  )
}
