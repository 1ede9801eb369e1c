import { useSignal } from '@preact/signals'
import type { TargetedEvent } from 'preact'
import type { Image } from '../../../src/client/patchbay.ts'
import { counted } from '../parts/counted.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { imageSizeText } from '../parts/size-text.ts'
import { messageOf } from '../state/notices.ts'
import { atField, FieldFault } from './field-fault.ts'
import { type FormField, fieldsOf, type Schema, textOf, valueIn } from './fields.ts'
import { type FormPart, FormParts } from './form-parts.tsx'
import { useImages } from './images.ts'
import { differenceFrom, type NodeTypeValues } from './node-type-value.ts'
import { PortsField } from './ports-field.tsx'
import { hasFewRows, TableField } from './table-field.tsx'

interface FormProps {
  readonly schema: Schema
  readonly values: Readonly<Record<string, unknown>>
  readonly isDisabled: boolean
  /** Its parts; absent: it has one. */
  readonly parts?: readonly FormPart[]
  /** The kind whose images its fields can name. */
  readonly imageKind?: string
  /** The name of the object, for disks that are made for it. */
  readonly owner?: string
  /** The node type from which the values come: those that differ are marked. */
  readonly nodeType?: NodeTypeValues
  /** The text of the button. */
  readonly verb?: string
  /** For a form in a dialog: both buttons are always shown, and one calls this. Absent: the buttons are shown when a field was changed. */
  readonly onCancel?: () => void
  /** Sends the members that were changed. False: it was refused, and the form keeps them; a rejection is shown in the form, too. */
  readonly onSave: (changes: Record<string, unknown>) => Promise<boolean>
}

/** A form for the members of an object, from its JSON Schema. */
export function SchemaForm({
  schema,
  values,
  isDisabled,
  parts = [],
  imageKind,
  owner,
  nodeType,
  verb = 'Save',
  onCancel,
  onSave,
}: FormProps) {
  const { images, read, readAgain } = useImages(imageKind)
  /** The typed text, by field. Other fields follow the values. */
  const typed = useSignal<Readonly<Record<string, string | boolean>>>({})
  const added = useSignal<readonly string[]>([])
  const isSaving = useSignal(false)
  const failure = useSignal<Error | undefined>(undefined)
  const fields = fieldsOf(schema)
  const isChanged = Object.keys(typed.value).length > 0
  const settle = () => {
    typed.value = {}
    added.value = []
  }
  const type = (name: string, value: string | boolean) => {
    typed.value = { ...typed.value, [name]: value }
  }
  const currentOf = (name: string) => typed.value[name] ?? values[name]
  const save = async () => {
    // The button is disabled only when it is drawn again, which may be after a second press.
    if (isSaving.value) return
    failure.value = undefined
    try {
      const changes = Object.entries(typed.value).map(([name, text]) => {
        const field = fields.find((known) => known.name === name)
        return [name, typeof text === 'boolean' || field === undefined ? text : valueIn(field, text)]
      })
      isSaving.value = true
      if (await onSave(Object.fromEntries(changes))) settle()
    } catch (error) {
      failure.value = error instanceof Error ? error : new Error(messageOf(error))
    } finally {
      isSaving.value = false
    }
  }
  const fault = failure.value && atField(failure.value.message, fields)
  const upload = failure.value instanceof FieldFault ? failure.value.upload : undefined
  return (
    <form
      class="schema-form"
      onFocusCapture={read}
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      {nodeType !== undefined && <Differing {...{ nodeType, fields, parts, currentOf }} />}
      <FormParts
        fields={fields}
        parts={parts}
        currentOf={currentOf}
        onType={type}
        isDisabled={isDisabled}
        added={added}
        disks={
          imageKind === undefined || owner === undefined
            ? undefined
            : { kind: imageKind, name: owner, onMade: readAgain }
        }
        view={(field) => (
          <FieldView
            field={field}
            value={currentOf(field.name)}
            isDisabled={isDisabled}
            images={imageKind === undefined ? undefined : images.value}
            difference={nodeType && differenceFrom(nodeType, field, currentOf(field.name))}
            isWrong={fault?.name === field.name}
            onType={(value) => type(field.name, value)}
          />
        )}
      />
      <ErrorMessage text={fault?.text ?? ''} />
      {(isChanged || added.value.length > 0 || onCancel !== undefined) && (
        <div class="row form-actions">
          {upload !== undefined && (
            <button type="button" onClick={() => upload(() => void save())}>
              <Icon name="plus" /> Upload
            </button>
          )}
          <button type="submit" class="is-main" disabled={isSaving.value || !isChanged}>
            {verb}
          </button>
          <button
            type="button"
            onClick={() => {
              settle()
              failure.value = undefined
              onCancel?.()
            }}
          >
            {onCancel === undefined ? 'Discard' : 'Cancel'}
          </button>
        </div>
      )}
    </form>
  )
}

type DifferingProps = Required<Pick<FormProps, 'nodeType' | 'parts'>> & {
  readonly fields: readonly FormField[]
  readonly currentOf: (name: string) => unknown
}

/** Which settings are not those of the node type, with a way to each. */
function Differing({ nodeType, fields, parts, currentOf }: DifferingProps) {
  const order = parts.flatMap(({ settings }) => settings)
  const differing = fields
    .filter((field) => differenceFrom(nodeType, field, currentOf(field.name)) !== undefined)
    .sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
  if (differing.length === 0) return null
  // In a row of a form the name of the row says more than the title of the field.
  const nameOf = ({ name, title }: FormField) => {
    for (const { rows } of parts) {
      const index = rows?.settings.findIndex((row) => row.includes(name)) ?? -1
      if (rows !== undefined && index >= 0) return `${rows.noun} ${index + 1}`
    }
    return title
  }
  const names = new Map(differing.toReversed().map((field) => [nameOf(field), field.name]))
  const links = [...names].toReversed()
  return (
    <p class="differs">
      {counted(links.length, 'setting')} {links.length === 1 ? 'differs' : 'differ'} from <bdi>{nodeType.name}</bdi>:{' '}
      {links.map(([title, name], index) => [
        index > 0 && ', ',
        <button key={name} type="button" class="is-quiet" onClick={() => show(name)}>
          {title}
        </button>,
      ])}
    </p>
  )
}

/** Moves the focus to a field, also in a part that is closed. */
function show(name: string): void {
  const field = document.getElementById(`field-${name}`)
  field?.closest('details')?.setAttribute('open', '')
  field?.focus()
}

interface FieldProps {
  readonly field: FormField
  readonly value: unknown
  readonly isDisabled: boolean
  /** The images that a field for an image offers. */
  readonly images?: readonly Image[] | undefined
  /** How the value differs from that of the node type. */
  readonly difference?: string | undefined
  /** Whether the service has refused its value. */
  readonly isWrong?: boolean
  readonly onType: (value: string | boolean) => void
}

/** One field of a form, with its label and its help. */
export function FieldView({ field, value, isDisabled, images, difference, isWrong = false, onType }: FieldProps) {
  const { name, title } = field
  // Descriptions are Markdown of the API document.
  const description = field.description?.replaceAll('`', '')
  const id = `field-${name}`
  const common = { id, name, disabled: isDisabled, required: field.isRequired, 'aria-invalid': isWrong }
  if (field.kind === 'flag')
    return (
      <>
        <label class="flag" title={description}>
          <input
            {...{ id, name, disabled: isDisabled }}
            type="checkbox"
            checked={value === true}
            onChange={(event) => onType(event.currentTarget.checked)}
          />
          {title}
        </label>
        <Different text={difference} />
      </>
    )
  const text = typeof value === 'string' ? value : textOf(field, value)
  if (field.kind === 'ports') return <PortsField {...{ field, text, isDisabled, onType }} />
  if (field.kind === 'table' && hasFewRows(text)) return <TableField {...{ field, text, isDisabled, onType }} />
  return (
    <div class="field">
      <label for={id} title={description}>
        {title}
      </label>
      {field.kind === 'choice' ? (
        <select {...common} value={text} onChange={(event) => onType(event.currentTarget.value)}>
          {!field.options.some((it) => String(it) === text) && <option value="" />}
          {field.options.map((it) => (
            <option key={it} value={String(it)}>
              {it === '' ? '(default)' : it}
            </option>
          ))}
        </select>
      ) : field.kind === 'lines' || field.kind === 'list' || field.kind === 'json' || field.kind === 'table' ? (
        <textarea
          {...common}
          rows={Math.min(10, Math.max(2, text.split('\n').length))}
          spellcheck={false}
          value={text}
          onInput={(event) => onType(event.currentTarget.value)}
        />
      ) : field.kind === 'number' ? (
        <input
          {...common}
          type="number"
          min={field.minimum}
          max={field.maximum}
          step="any"
          value={text}
          onInput={(event) => onType(event.currentTarget.value)}
        />
      ) : (
        <TextInput
          {...common}
          isSecret={name === 'password'}
          list={field.isImage === true && images !== undefined ? `${id}-images` : undefined}
          maxLength={field.maxLength}
          value={text}
          onInput={(event) => onType(event.currentTarget.value)}
        />
      )}
      {field.isImage === true && images !== undefined && (
        <datalist id={`${id}-images`}>
          {images.map((image) => (
            <option key={image.path} value={image.path} label={imageSizeText(image)} />
          ))}
        </datalist>
      )}
      <Different text={difference} />
      {description !== undefined && description.toLowerCase() !== title.toLowerCase() && (
        <p class="help">{description}</p>
      )}
    </div>
  )
}

/** The mark of a value that is not that of the node type. */
const Different = ({ text }: { text: string | undefined }) =>
  text === undefined ? null : (
    <p class="different" dir="auto">
      {text}
    </p>
  )

interface TextProps {
  readonly id: string
  readonly name: string
  readonly disabled: boolean
  readonly required: boolean
  readonly 'aria-invalid': boolean
  readonly isSecret: boolean
  readonly list: string | undefined
  readonly maxLength: number | undefined
  readonly value: string
  readonly onInput: (event: TargetedEvent<HTMLInputElement>) => void
}

const TextInput = ({ isSecret, ...given }: TextProps) =>
  isSecret ? (
    <input {...given} type="password" autocomplete="new-password" />
  ) : (
    <input {...given} type="text" spellcheck={false} autocomplete="off" />
  )
