import { forbidden } from './api-error.ts'

const separators = /[/\\]/g

/** 403 for a new name of a project that separates parts of a path, as commands and archives use it in paths. Stored names may. */
export function requireNoSeparator(name: string): void {
  if (name.search(separators) !== -1) throw forbidden('name: the name of a project cannot contain / or \\')
}

/** A name that another program gave a project, without them. */
export const withoutSeparators = (name: string): string => name.replaceAll(separators, '-')
