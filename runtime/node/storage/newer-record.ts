import { ApiError } from '../../../src/errors/api-error.ts'

/** Put in by tests alone, which build a program of later records. */
declare const PATCHBAY_RECORD_VERSION: number | undefined

/** Version of the records of nodes and projects that this program writes; it reads all before. */
export const recordVersion: number = typeof PATCHBAY_RECORD_VERSION === 'number' ? PATCHBAY_RECORD_VERSION : 1

/** What is said of something that only a later program can change. */
export const newerReason = (version: number): string =>
  `it was written by a newer version of Patchbay (records of version ${version}): run that version to change it`

/** A record that a newer version of the program wrote: it is neither read as a damaged one nor written over. 409 for who asks. */
export class NewerRecord extends ApiError {
  readonly version: number
  /** What it holds, of which little is known. */
  readonly content: Readonly<Record<string, unknown>>

  constructor(path: string, version: number, content: Readonly<Record<string, unknown>>) {
    super(409, `${path}: ${newerReason(version)}`)
    this.version = version
    this.content = content
  }
}

/** Throws NewerRecord for a text that says so of itself. */
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
