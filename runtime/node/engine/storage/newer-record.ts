import { ApiError } from '../../../../src/lib/errors/api-error.ts'

/** Defined only by tests that build a program with later records. */
declare const PATCHBAY_RECORD_VERSION: number | undefined

/** Version of the records of nodes and projects that this program writes; it reads this version and earlier ones. */
export const recordVersion: number = typeof PATCHBAY_RECORD_VERSION === 'number' ? PATCHBAY_RECORD_VERSION : 1

/** The reason why this program cannot change a record of a newer version. */
export const newerReason = (version: number): string =>
  `it was written by a newer version of Patchbay (records of version ${version}): run that version to change it`

/** 409: a newer version of the program wrote the record. It does not count as damaged, and is not overwritten. */
export class NewerRecord extends ApiError {
  readonly version: number
  /** The content; only few members are known. */
  readonly content: Readonly<Record<string, unknown>>

  constructor(path: string, version: number, content: Readonly<Record<string, unknown>>) {
    super(409, `${path}: ${newerReason(version)}`)
    this.version = version
    this.content = content
  }
}

/** Throws NewerRecord when the `version` in the text is newer than `recordVersion`. */
export function requireKnownVersion(path: string, text: string): void {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return
  const { version } = value as { version?: unknown }
  if (!Number.isInteger(version) || Number(version) <= recordVersion) return
  throw new NewerRecord(path, Number(version), value as Record<string, unknown>)
}
