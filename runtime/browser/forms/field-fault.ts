import type { FormField } from './fields.ts'

/** Why a form was refused, and what can be done about it. */
export class FieldFault extends Error {
  /** Has a missing image uploaded, and then calls what saves the form. */
  readonly upload: ((save: () => void) => void) | undefined

  constructor(message: string, { upload, cause }: { upload?: FieldFault['upload']; cause: unknown }) {
    super(message, { cause })
    this.upload = upload
  }
}

/** A refusal with the title of its field in place of the member of the API; `name`: that field. */
export function atField(
  message: string,
  fields: readonly Pick<FormField, 'name' | 'title'>[],
): { readonly name?: string; readonly text: string } {
  const [, name, rest = ''] = /^(?:properties\.)?([a-z]\w*)(?:\[\d+\][.\w]*)?: (.*)$/s.exec(message) ?? []
  const field = fields.find((it) => it.name === name)
  return field === undefined ? { text: message } : { name: field.name, text: `${field.title}: ${rest}` }
}
