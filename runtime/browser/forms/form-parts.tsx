import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { SearchField } from '../parts/search-field.tsx'
import type { FormField } from './fields.ts'

/** A part of a form: its title, and the names of its fields. */
export interface FormPart {
  readonly title: string
  readonly settings: readonly string[]
}

/** Number of fields from which on they can be searched. */
const manyFields = 12

interface FormPartsProps {
  readonly fields: readonly FormField[]
  /** In order; the first has no heading, the last is closed at first. Empty: one part. */
  readonly parts: readonly FormPart[]
  readonly view: (field: FormField) => ComponentChildren
}

/** The fields of a form in their parts, with a search where there are many. */
export function FormParts({ fields, parts, view }: FormPartsProps) {
  const wanted = useSignal('')
  const words = wanted.value.trim().toLowerCase()
  const inPart = ({ settings }: FormPart) =>
    settings.flatMap((name) => fields.find((field) => field.name === name) ?? [])
  const named = new Set(parts.flatMap(({ settings }) => settings))
  const [first, ...others] = parts.filter((part) => inPart(part).length > 0)
  const found = fields.filter(({ name, title }) => `${name} ${title}`.toLowerCase().includes(words))
  return (
    <>
      {fields.length > manyFields && <SearchField label="Search settings" words={wanted} />}
      {words !== '' || first === undefined ? (
        <Fields fields={found} view={view} />
      ) : (
        <>
          <Fields fields={[...inPart(first), ...fields.filter(({ name }) => !named.has(name))]} view={view} />
          {others.map((part, index) => {
            return (
              <details key={part.title} class="form-part" open={index < others.length - 1}>
                <summary>{part.title}</summary>
                <Fields fields={inPart(part)} view={view} />
              </details>
            )
          })}
        </>
      )}
    </>
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
const needsWidth = ({ name }: FormField): boolean => /(^|_)(image|path|initrd|line|options)$/.test(name)
