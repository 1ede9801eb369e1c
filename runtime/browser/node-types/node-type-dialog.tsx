import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { LabKind, LabTemplate } from '../../../src/client/patchbay.ts'
import { SymbolChoice } from '../canvas/symbol-choice.tsx'
import { SymbolPicture } from '../canvas/symbols.tsx'
import { FormParts } from '../forms/form-parts.tsx'
import { FieldView } from '../forms/schema-form.tsx'
import { ImportDialog } from '../importing/import-dialog.tsx'
import { CopyText } from '../parts/copy-text.tsx'
import { Dialog } from '../parts/dialog.tsx'

import { ErrorMessage } from '../parts/error-message.tsx'
import { useFileDrop } from '../parts/file-drop.ts'
import { Icon } from '../parts/icon.tsx'
import { imageSizeText, sizeText } from '../parts/size-text.ts'
import { TextField } from '../parts/text-field.tsx'
import { client } from '../state/client.ts'
import { findPrevented } from '../state/diagnosis.ts'
import { messageOf, notify, notifyError } from '../state/notices.ts'
import { type Finding, type Prevented, shortFinding } from '../state/prevented.ts'
import { NodeTypeDraft, suggestionOf } from './node-type.ts'

interface NodeTypeProps {
  /** The type to change; absent: a new one is made. */
  readonly template?: LabTemplate
  /** An image that is stored, from which the new type starts. */
  readonly image?: { readonly kind: string; readonly path: string }
  /** Called when types were made, changed or deleted. */
  readonly onChanged: () => void
  readonly onClose: () => void
}

/** Makes a node type (a template) from an image or a kind, or changes one. */
export function NodeTypeDialog({ template, image, onChanged, onClose }: NodeTypeProps) {
  const kinds = useSignal<readonly LabKind[]>([])
  const draft = useSignal<NodeTypeDraft | undefined>(undefined)
  const appliances = useSignal<readonly File[]>([])
  const failure = useSignal('')
  /** What is missing, by the kinds that cannot run without it. */
  const prevented = useSignal<Prevented>(new Map())
  /** The reading of the kinds. */
  const reading = useRef<Promise<void>>(Promise.resolve())
  const begin = (kind: LabKind, given?: LabTemplate) => {
    failure.value = ''
    draft.value = new NodeTypeDraft(kind, given)
    draft.value.readImages().catch(notifyError)
    return draft.value
  }
  useEffect(() => {
    void findPrevented().then((found) => {
      prevented.value = found
    })
    reading.current = client
      .call('GET /v2/kinds')
      .then((all) => {
        // Those that are made of an image come first: others are in the palette as they are.
        kinds.value = all.toSorted((a, b) => b.first_settings.length - a.first_settings.length)
        const kind = all.find(({ name }) => name === (template?.template_type ?? image?.kind))
        if (kind === undefined) return
        const begun = begin(kind, template)
        if (image !== undefined && kind.image_setting !== null) begun.chooseImage(image.path)
      })
      .catch(notifyError)
  }, [])
  const take = async (files: Iterable<File>) => {
    const [file] = files
    if (file === undefined) return
    if (/\.(gns3a|gns3appliance)$/i.test(file.name)) {
      appliances.value = [...files]
      return
    }
    const suggested = await suggestionOf(file)
    // A file may be dropped as soon as the dialog is there.
    await reading.current
    const kind = draft.value?.kind ?? kinds.value.find(({ name }) => name === suggested?.kind)
    if (kind === undefined) failure.value = `No node starts from ${file.name}: choose what it is.`
    else await (draft.value ?? begin(kind)).send(file)
  }
  const { isOver, handlers } = useFileDrop((files) => void take(files).catch(notifyError))
  if (appliances.value.length > 0)
    return (
      <ImportDialog
        files={appliances.value}
        onClose={() => {
          onChanged()
          onClose()
        }}
      />
    )
  const title = template === undefined ? 'Add a node type' : `Node type ${template.name}`
  const possible = kinds.value.filter(({ name }) => !prevented.value.has(name))
  const impossible = kinds.value.filter(({ name }) => prevented.value.has(name))
  return (
    // A press beside the dialog must not end an upload.
    <Dialog title={title} isWide isFirm onClose={onClose}>
      <div class={isOver.value ? 'node-type is-over' : 'node-type'} {...handlers}>
        {draft.value === undefined ? (
          <>
            <FileChoice
              text="Drop a disk, an image or an appliance (.gns3a) here, or"
              onFiles={(files) => void take(files).catch(notifyError)}
            />
            <ErrorMessage text={failure.value} />
            <ul class="kind-cards">
              {possible.map((kind) => (
                <li key={kind.name}>
                  <button type="button" class="kind-card" onClick={() => begin(kind)}>
                    <SymbolPicture name={kind.symbol} />
                    <b>{kind.title}</b>
                  </button>
                </li>
              ))}
            </ul>
            {impossible.length > 0 && (
              <section aria-label="Not installed">
                <h3>Not installed</h3>
                <ul class="missing-kinds">
                  {impossible.map((kind) => (
                    <li key={kind.name}>
                      <SymbolPicture name={kind.symbol} />
                      <div>
                        <b>{kind.title}</b>
                        <Missing checks={prevented.value.get(kind.name)} />
                      </div>
                    </li>
                  ))}
                </ul>
              </section>
            )}
            <div class="row form-actions">
              <button type="button" onClick={onClose}>
                Cancel
              </button>
            </div>
          </>
        ) : (
          <TypeForm
            draft={draft.value}
            prevented={prevented.value.get(draft.value.kind.name)}
            onFiles={(files) => void take(files).catch(notifyError)}
            {...{ onChanged, onClose }}
          />
        )}
      </div>
    </Dialog>
  )
}

interface TypeFormProps extends Pick<NodeTypeProps, 'onChanged' | 'onClose'> {
  readonly draft: NodeTypeDraft
  readonly onFiles: (files: Iterable<File>) => void
  /** What its nodes lack on this machine. */
  readonly prevented: readonly Finding[] | undefined
}

function TypeForm({ draft, onFiles, prevented, onChanged, onClose }: TypeFormProps) {
  const { kind, template, fields } = draft
  const failure = useSignal('')
  const isSending = useSignal(false)
  const added = useSignal<readonly string[]>([])
  const form = useRef<HTMLFormElement>(null)
  // The card that was pressed is gone, and the focus with it.
  useEffect(() => form.current?.querySelector<HTMLElement>('select, input')?.focus(), [])
  const first = fields.filter(({ name }) => kind.first_settings.includes(name) && name !== kind.image_setting)
  // A machine that starts from a CD-ROM has its disk there.
  const more = fields.filter((field) => !first.includes(field) && field.name !== draft.imageSetting)
  const act = async (work: () => Promise<{ readonly name: string }>, done: string) => {
    // The button is disabled only when it is drawn again, which may be after a second press.
    if (isSending.value) return
    isSending.value = true
    failure.value = ''
    try {
      const { name } = await work()
      notify('done', `Node type ${name} ${done}.`)
      onChanged()
      onClose()
    } catch (error) {
      failure.value = messageOf(error)
    } finally {
      isSending.value = false
    }
  }
  const params = { template_id: template?.template_id ?? '' }
  const view = (field: (typeof fields)[number]) => (
    <FieldView
      key={field.name}
      field={field}
      value={draft.valueOf(field)}
      isDisabled={false}
      images={kind.has_images ? draft.images.value : undefined}
      onType={(value) => draft.enter(field.name, value)}
    />
  )
  return (
    <form
      ref={form}
      class="schema-form"
      onSubmit={(event) => {
        event.preventDefault()
        void act(() => draft.save(), template === undefined ? 'was added' : 'was changed')
      }}
    >
      <p class="muted">{kind.title}</p>
      <Missing checks={prevented} />
      {kind.image_setting !== null && <ImageField {...{ draft, onFiles }} />}
      {draft.isUnknown && (
        <p class="reason is-mild" role="status">
          <Icon name="warning" />{' '}
          <span>
            <b dir="auto">{draft.image}</b> is not an image that Patchbay knows: it is taken as a machine. Set its
            memory and its adapters, the number of its network ports.
          </span>
        </p>
      )}
      <div class="short-fields">
        <TextField id="type-name" title="Name" value={draft.name} isFirst={template === undefined} />
        {first.map(view)}
        <SymbolField draft={draft} />
      </div>
      {more.length > 0 && (
        <details>
          <summary>More</summary>
          <FormParts
            fields={more}
            parts={kind.form_parts}
            view={view}
            isDisabled={false}
            added={added}
            disks={{
              kind: kind.name,
              name: draft.name.value.trim() || kind.noun,
              onMade: () => void draft.readImages().catch(notifyError),
            }}
            currentOf={(name) => draft.valueOf({ name })}
            onType={(name, value) => draft.enter(name, value)}
          />
        </details>
      )}
      <ErrorMessage text={failure.value} />
      <div class="row form-actions">
        <button type="submit" class="is-main" disabled={isSending.value || !draft.isReady.value}>
          {template === undefined ? 'Add' : 'Save'}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        {template !== undefined && (
          <>
            <span class="spacer" />
            <button
              type="button"
              onClick={() =>
                void act(() => client.call('POST /v2/templates/{template_id}/duplicate', { params }), 'was added')
              }
            >
              Duplicate
            </button>
            <button
              type="button"
              class="is-danger"
              onClick={() =>
                void act(async () => {
                  await client.call('DELETE /v2/templates/{template_id}', { params })
                  return template
                }, 'was deleted; its nodes stay')
              }
            >
              Delete
            </button>
          </>
        )}
      </div>
    </form>
  )
}

/** Why nodes of a kind cannot run on this machine, and how to mend it, as the doctor says it. */
const Missing = ({ checks = [] }: { checks: readonly Finding[] | undefined }) => (
  <>
    {checks.map((check) => (
      <div key={check.name}>
        <p class="muted" dir="auto">
          {shortFinding(check)}
        </p>
        {check.fix !== null && <CopyText text={check.fix} what="the fix" />}
      </div>
    ))}
  </>
)

/** The image: one that the service has, or one from this computer. */
function ImageField({ draft, onFiles }: Pick<TypeFormProps, 'draft' | 'onFiles'>) {
  const id = useId()
  const upload = draft.upload.value
  const chosen = draft.image
  const known = draft.images.value.some(({ path }) => path === chosen)
  return (
    <div class="field">
      <label for={id}>Image</label>
      <select
        id={id}
        value={chosen}
        onChange={({ currentTarget }) => {
          draft.chooseImage(currentTarget.value)
        }}
      >
        <option value="">{draft.images.value.length === 0 ? 'No image is stored yet' : 'Choose an image'}</option>
        {!known && chosen !== '' && <option value={chosen}>{chosen}</option>}
        {draft.images.value.map((image) => (
          <option key={image.path} value={image.path}>
            {image.path}: {imageSizeText(image)}
          </option>
        ))}
      </select>
      {upload !== undefined && upload.state.value !== 'done' && (
        <>
          <progress
            value={upload.stored.value}
            max={Math.max(1, upload.total)}
            aria-label={`Upload of ${upload.name}`}
          />
          <p class="muted" role="status">
            {sizeText(upload.stored.value)} of {sizeText(upload.total)}
          </p>
          <ErrorMessage text={upload.reason.value} />
        </>
      )}
      <FileChoice text="Or drop a file here, or" onFiles={onFiles} />
    </div>
  )
}

function SymbolField({ draft: { symbol } }: Pick<TypeFormProps, 'draft'>) {
  return (
    <details class="symbol-field">
      <summary>
        <SymbolPicture name={symbol.value} /> Symbol: {symbol.value.replaceAll('_', ' ')}
      </summary>
      <SymbolChoice
        chosen={symbol.value}
        onChoose={(chosen) => {
          symbol.value = chosen
        }}
      />
    </details>
  )
}

const FileChoice = ({
  text,
  onFiles,
}: {
  readonly text: string
  readonly onFiles: (files: Iterable<File>) => void
}) => (
  <p class="file-choice">
    <span class="muted">{text}</span>{' '}
    <label class="button">
      Choose a file
      <input
        class="hidden"
        type="file"
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])])
          event.currentTarget.value = ''
        }}
      />
    </label>
  </p>
)
