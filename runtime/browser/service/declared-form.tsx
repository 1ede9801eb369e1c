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
  /** The members that the form has. */
  readonly members: readonly string[]
  readonly verb: string
  readonly values: Readonly<Record<string, unknown>>
  readonly onSend: (values: Record<string, unknown>) => Promise<unknown>
  readonly onClose: () => void
}

/** A dialog with a form that the service declares. */
export function DeclaredForm({ title, schema: name, members, verb, values, onSend, onClose }: DeclaredFormProps) {
  const schema = useSignal<Schema | undefined>(undefined)
  useEffect(() => {
    declaredSchema(name)
      .then((found) => {
        const properties = members.flatMap((key) => {
          const member = found.properties?.[key]
          return member === undefined ? [] : [[key, member] as const]
        })
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
            await onSend(changes)
            onClose()
            return true
          }}
        />
      )}
    </Dialog>
  )
}
