import type { Signal } from '@preact/signals'
import type { ClassStudent, TokenLimits } from '../../../src/client/patchbay.ts'
import type { FormField } from '../forms/fields.ts'
import { FieldView } from '../forms/schema-form.tsx'

/** The texts of a form, by field. */
export type Texts = Signal<Readonly<Record<string, string>>>

/** A field of a form whose values are texts. */
export const Field = ({ texts, field }: { texts: Texts; field: FormField }) => (
  <FieldView
    field={field}
    value={texts.value[field.name]}
    isDisabled={false}
    onType={(value) => {
      texts.value = { ...texts.value, [field.name]: String(value) }
    }}
  />
)

export const textField = (name: string, title: string, description?: string): FormField => ({
  name,
  title,
  description,
  isRequired: true,
  kind: 'text',
  maxLength: 100,
  pattern: undefined,
})
export const choiceField = (name: string, title: string, options: readonly string[]): FormField => ({
  name,
  title,
  description: undefined,
  isRequired: true,
  kind: 'choice',
  options,
})

const day = 86_400
const roles = { 'change the lab and type on consoles': 'operate', 'look at the lab': 'read' } as const
const lifetimes = { '1 day': day, '1 week': 7 * day, '30 days': 30 * day, '6 months': 182 * day, '1 year': 365 * day }
const limitTitles: Readonly<Record<keyof TokenLimits, string>> = {
  max_nodes: 'Nodes at most',
  max_running: 'Running at most',
  max_ram_mb: 'Memory at most, MB',
}
const limits = Object.entries(limitTitles) as [keyof TokenLimits, string][]
const never = 'never'

/** What the fields of links have at first; as the links of a class have it, where there are some. */
export function linkTexts(students: readonly ClassStudent[] = []): Readonly<Record<string, string>> {
  const token = students.find((it) => it.token !== null)?.token
  const seconds = token?.expires_at == null ? 0 : (Date.parse(token.expires_at) - Date.parse(token.created_at)) / 1000
  const isLike = (lifetime: number) => Math.abs(lifetime - seconds) < 60
  return {
    role: nameOf(roles, (it) => it === (token?.role ?? 'operate')),
    lifetime: token === undefined ? '6 months' : nameOf(lifetimes, isLike) || never,
    ...Object.fromEntries(limits.map(([name]) => [name, String(token?.limits?.[name] ?? '')])),
  }
}

const nameOf = <T,>(all: Readonly<Record<string, T>>, isIt: (value: T) => boolean): string =>
  Object.keys(all).find((it) => isIt(all[it] as T)) ?? ''

/** What links may do, and for how long. */
export const LinkFields = ({ texts }: { texts: Texts }) => (
  <>
    <div class="form-fields">
      <Field texts={texts} field={choiceField('role', 'With the link a student may', Object.keys(roles))} />
      <Field texts={texts} field={choiceField('lifetime', 'The link ends after', [...Object.keys(lifetimes), never])} />
    </div>
    <details class="form-part" open={limits.some(([name]) => texts.peek()[name])}>
      <summary>More</summary>
      <p class="help">Limits of each lab. Empty: none.</p>
      <div class="form-fields">
        {limits.map(([name, title]) => (
          <Field
            key={name}
            texts={texts}
            field={{
              name,
              title,
              description: undefined,
              isRequired: false,
              kind: 'number',
              minimum: 1,
              maximum: undefined,
            }}
          />
        ))}
      </div>
    </details>
  </>
)

/** The body of a request for links, from the fields. */
export function linkSettings(texts: Readonly<Record<string, string>>) {
  const given = limits.filter(([name]) => texts[name]).map(([name]) => [name, Number(texts[name])] as const)
  return {
    role: roles[texts.role as keyof typeof roles],
    expires_in_s: lifetimes[texts.lifetime as keyof typeof lifetimes] ?? null,
    limits: given.length === 0 ? null : Object.fromEntries(given),
  }
}
