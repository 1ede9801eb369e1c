import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../forms/fields.ts'
import { SchemaForm } from '../forms/schema-form.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { notifyError } from '../state/notices.ts'
import { declaredSchema } from './declared-schema.ts'

interface DeclaredFormProps {
  readonly title: string
  /** The name of the schema in the OpenAPI document. */
  readonly schema: string
  /** The members that the form has; one with members of its own shows these. */
  readonly members: readonly string[]
  readonly verb: string
  /** Words to choose from in place of the values of a member, and its title. */
  readonly words?: Readonly<
    Record<string, { readonly title: string; readonly values: Readonly<Record<string, unknown>> }>
  >
  readonly values: Readonly<Record<string, unknown>>
  readonly onSend: (values: Record<string, unknown>) => Promise<unknown>
  readonly onClose: () => void
}

/** The members of a member that is an object; undefined for any other. */
const innerOf = (schema: Schema | undefined): Readonly<Record<string, Schema>> | undefined =>
  schema?.properties ?? schema?.anyOf?.find(({ properties }) => properties !== undefined)?.properties

/** The values as the service takes them. */
function nested(values: Record<string, unknown>, outer: Readonly<Record<string, string>>): Record<string, unknown> {
  const sent: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(values)) {
    const name = outer[key]
    if (name === undefined) sent[key] = value
    else if (value !== null) sent[name] = { ...(sent[name] as object | undefined), [key]: value }
  }
  return sent
}

/** A dialog with a form that the service declares. */
export function DeclaredForm(props: DeclaredFormProps) {
  const { title, schema: name, members, words = {}, verb, values, onSend, onClose } = props
  const schema = useSignal<Schema | undefined>(undefined)
  /** The member in which a member of the form is; absent: in none. */
  const outer = useSignal<Readonly<Record<string, string>>>({})
  useEffect(() => {
    declaredSchema(name)
      .then((found) => {
        const properties = members.flatMap((key): (readonly [string, Schema])[] => {
          const member = found.properties?.[key]
          if (member === undefined) return []
          const choices = words[key]
          if (choices !== undefined)
            return [[key, { title: choices.title, enum: Object.keys(choices.values) }] as const]
          return Object.entries(innerOf(member) ?? { [key]: member })
        })
        outer.value = Object.fromEntries(
          members.flatMap((key) => Object.keys(innerOf(found.properties?.[key]) ?? {}).map((inner) => [inner, key])),
        )
        schema.value = { ...found, properties: Object.fromEntries(properties) }
      })
      .catch(notifyError)
  }, [name])
  return (
    <Dialog title={title} onClose={onClose}>
      {schema.value === undefined ? (
        <p class="muted">Loading the form …</p>
      ) : (
        <SchemaForm
          schema={schema.value}
          values={values}
          isDisabled={false}
          verb={verb}
          onCancel={onClose}
          onSave={async (changes) => {
            const sent = Object.entries(changes).map(([key, value]) => [
              key,
              words[key]?.values[String(value)] ?? value,
            ])
            await onSend(nested(Object.fromEntries(sent), outer.value))
            onClose()
            return true
          }}
        />
      )}
    </Dialog>
  )
}
