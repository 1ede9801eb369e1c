import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../parts/icon.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { hasAllLabs, mayEdit } from '../state/session.ts'
import type { FormField } from './fields.ts'
import { NewDisk } from './new-disk.tsx'

/** A part of a form: its title, and the names of its fields. */
export interface FormPart {
  readonly title: string
  readonly settings: readonly string[]
  /** Settings that are in rows, such as those of each disk; the first of a row says whether the row is used. */
  readonly rows?: {
    readonly noun: string
    /** What the settings of a row are called in it. */
    readonly titles: readonly string[]
    readonly settings: readonly (readonly string[])[]
  }
}

/** Number of fields from which on they can be searched. */
const manyFields = 12

interface FormPartsProps {
  readonly fields: readonly FormField[]
  /** In order; the first has no heading, the last is closed at first. Empty: one part. */
  readonly parts: readonly FormPart[]
  readonly view: (field: FormField) => ComponentChildren
  /** The value of a setting now, and how it is changed. */
  readonly currentOf: (name: string) => unknown
  readonly onType: (name: string, value: string) => void
  readonly isDisabled: boolean
  /** The first settings of rows that were added, and may still be without a value. */
  readonly added: Signal<readonly string[]>
  /** For whose nodes a row without an image offers a new disk; absent: for none. */
  readonly disks?: DiskOwner | undefined
}

/** The node, or the node type, that gets a new disk. */
interface DiskOwner {
  readonly kind: string
  readonly name: string
  /** Called when there is one more image. */
  readonly onMade: () => void
}

/** The fields of a form in their parts, with a search where there are many. */
export function FormParts({ fields, parts, view, ...rowProps }: FormPartsProps) {
  const wanted = useSignal('')
  const words = wanted.value.trim().toLowerCase()
  const named = (settings: readonly string[]) =>
    settings.flatMap((name) => fields.find((field) => field.name === name) ?? [])
  const inPart = ({ settings }: FormPart) => named(settings)
  const inParts = new Set(parts.flatMap(({ settings }) => settings))
  const [first, ...others] = parts.filter((part) => inPart(part).length > 0)
  const found = fields.filter(({ name, title }) => `${name} ${title}`.toLowerCase().includes(words))
  return (
    <>
      {fields.length > manyFields && <SearchField label="Search settings" words={wanted} />}
      {words !== '' || first === undefined ? (
        found.length === 0 ? (
          <p class="muted" role="status">
            No setting is called so.
          </p>
        ) : (
          <Fields fields={found} view={view} />
        )
      ) : (
        <>
          <Fields fields={[...inPart(first), ...fields.filter(({ name }) => !inParts.has(name))]} view={view} />
          {others.map((part, index) => {
            return (
              <details key={part.title} class="form-part" open={index < others.length - 1}>
                <summary>{part.title}</summary>
                {part.rows !== undefined && (
                  <Rows noun={part.rows.noun} rows={rowsOf(part.rows, fields)} {...{ view, ...rowProps }} />
                )}
                <Fields
                  fields={inPart(part).filter(({ name }) => !part.rows?.settings.flat().includes(name))}
                  view={view}
                />
              </details>
            )
          })}
        </>
      )}
    </>
  )
}

/** In a row a setting has a short title, and needs no help. */
const rowsOf = ({ titles, settings }: NonNullable<FormPart['rows']>, fields: readonly FormField[]): RowsProps['rows'] =>
  settings.map((row) => ({
    main: row[0] ?? '',
    fields: row.flatMap((name, index) => {
      const field = fields.find((it) => it.name === name)
      return field === undefined ? [] : { ...field, title: titles[index] ?? field.title, description: undefined }
    }),
  }))

interface RowsProps extends Pick<FormPartsProps, 'view' | 'currentOf' | 'onType' | 'isDisabled' | 'added' | 'disks'> {
  readonly noun: string
  /** `main`: the setting without which the row is not used. */
  readonly rows: readonly { readonly main: string; readonly fields: readonly FormField[] }[]
}

/** The rows that are used, and a button for one more. */
function Rows({ noun, rows, view, currentOf, onType, isDisabled, added, disks }: RowsProps) {
  // An image is for all labs.
  const mayMake = disks !== undefined && !isDisabled && mayEdit() && hasAllLabs()
  const isUsed = ({ main }: RowsProps['rows'][number]) => Boolean(currentOf(main)) || added.value.includes(main)
  const next = rows.find((row) => row.fields.some(({ name }) => name === row.main) && !isUsed(row))
  return (
    <>
      {rows.map((row, index) => {
        const { main, fields } = row
        if (!isUsed(row) || fields.length === 0) return null
        const title = `${noun} ${index + 1}`
        return (
          <Row key={main} title={title} isNew={added.value.includes(main)}>
            <Fields fields={fields} view={view} />
            {mayMake && fields[0]?.isImage === true && !currentOf(main) && (
              <NewDisk
                kind={disks.kind}
                name={`${disks.name}-disk${index + 1}`}
                onMade={(path) => {
                  onType(main, path)
                  // The button that was pressed goes, and the focus with it.
                  document.getElementById(`field-${main}`)?.focus()
                  disks.onMade()
                }}
              />
            )}
            {!isDisabled && fields.some(({ name }) => name === main) && (
              <button
                type="button"
                class="is-quiet"
                onClick={() => {
                  added.value = added.value.filter((it) => it !== main)
                  onType(main, '')
                }}
              >
                Remove {title}
              </button>
            )}
          </Row>
        )
      })}
      {next !== undefined && !isDisabled && (
        <button
          type="button"
          onClick={() => {
            added.value = [...added.value, next.main]
            // What guests call the first disk tells them how to reach the next one.
            for (const { name, title } of next.fields) {
              const ofFirst = currentOf(rows[0]?.fields.find((it) => it.title === title)?.name ?? name)
              if (name !== next.main && ofFirst !== currentOf(name)) onType(name, String(ofFirst))
            }
          }}
        >
          <Icon name="plus" /> {noun}
        </button>
      )}
    </>
  )
}

function Row({ title, isNew, children }: { title: string; isNew: boolean; children: ComponentChildren }) {
  const element = useRef<HTMLFieldSetElement>(null)
  useEffect(() => {
    if (isNew) element.current?.querySelector('input')?.focus()
  }, [])
  return (
    <fieldset class="form-row" ref={element}>
      <legend>{title}</legend>
      {children}
    </fieldset>
  )
}

const Fields = ({ fields, view }: Pick<FormPartsProps, 'fields' | 'view'>) => (
  <div class="form-fields">
    {fields.map((field) => (
      <div key={field.name} class={isShort(field) ? undefined : 'is-long'}>
        {view(field)}
      </div>
    ))}
  </div>
)

/** Whether two such fields fit beside each other in a panel. */
const isShort = (field: FormField): boolean =>
  field.kind === 'number' ||
  field.kind === 'choice' ||
  field.kind === 'flag' ||
  (field.kind === 'text' && !needsWidth(field))

/** Whether its values are long: paths, names of files, and lines of options. */
const needsWidth = ({ name, isImage }: FormField): boolean =>
  isImage === true || /(^|_)(path|line|options|addr|address)$/.test(name)
