interface Word {
  readonly const: string
}
interface DeclaredEvent {
  readonly properties: { readonly action: Word | { readonly anyOf: readonly Word[] } }
}

/** Every action that a union of events declares. */
export const declaredActions = ({ anyOf }: { readonly anyOf: readonly DeclaredEvent[] }): string[] =>
  anyOf.flatMap(({ properties: { action } }) => ('anyOf' in action ? action.anyOf : [action]).map((it) => it.const))
