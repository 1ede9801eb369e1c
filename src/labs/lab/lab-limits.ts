import { defaultMaxObjects } from '../../labfile/max-objects.ts'
import { ApiError } from '../../lib/errors/api-error.ts'

/**
 * How much clients can store in sum. The settings `limits` of the service have these names and defaults. What is larger already, as it was
 * stored before a limit was lowered, stays usable: only its growth is refused.
 */
export interface LabLimits {
  /** Largest lab: JSON of its settings, nodes, links, drawings and records of snapshots, MiB. */
  readonly lab_mb: number
  /** Most nodes, links, drawings and snapshots of a lab together. */
  readonly lab_objects: number
  /** Most memory of all open labs, with the edits that they can undo, MiB. A larger lab cannot be opened. */
  readonly open_labs_mb: number
  /** Most templates that users have made. */
  readonly templates: number
  /** Most JSON of these templates, and of uploaded symbols, MiB each. */
  readonly templates_mb: number
  /** Most labs of the service. */
  readonly projects: number
  /** Most labs of a token for some projects. */
  readonly token_projects: number
}

export const defaultLabLimits: LabLimits = {
  lab_mb: 16,
  lab_objects: defaultMaxObjects,
  open_labs_mb: 256,
  templates: 1000,
  templates_mb: 16,
  projects: 10_000,
  token_projects: 1000,
}

export const mebibyte = 2 ** 20

/** 413: a sum of what clients have stored would exceed its limit. `limit`: the name of the setting, if there is one. */
export const limitReached = (message: string, limit?: keyof LabLimits): ApiError =>
  new ApiError(413, limit === undefined ? message : `${message} (limits.${limit})`, { code: 'limit-reached' })

/** A size for messages. */
export const inMebibytes = (bytes: number): string => `${(Math.ceil((bytes * 10) / mebibyte) / 10).toFixed(1)} MiB`

/** The size of a value, bytes: as JSON in UTF-8, and about what it takes in memory. */
export interface Size {
  readonly json: number
  readonly memory: number
}
const nothing: Size = { json: 0, memory: 0 }

/** What V8 takes for an object, an array or a member beside its text, bytes: JSON of many small values takes twenty times its size. */
const valueBytes = 40

const encoder = new TextEncoder()
/** Records are replaced, never changed in place, so each is measured once. */
const known = new WeakMap<object, Size>()

/** The size of a value of JSON; 0 for undefined. */
export function sizeOf(value: unknown): Size {
  if (value === undefined) return nothing
  if (typeof value !== 'object' || value === null) return measured(value)
  const found = known.get(value) ?? measured(value)
  known.set(value, found)
  return found
}

export const jsonBytes = (value: unknown): number => sizeOf(value).json

function measured(value: unknown): Size {
  const text = JSON.stringify(value) ?? ''
  // Most records are ASCII, whose length is known without a copy.
  const json = /[^\0-\x7f]/.test(text) ? encoder.encode(text).length : text.length
  return { json, memory: json + valueBytes * valuesIn(value) }
}

/** Number of values in a value, itself included. */
function valuesIn(value: unknown): number {
  let count = 0
  // Without recursion: a client decides how deep it is.
  const left = [value]
  while (left.length > 0) {
    const next = left.pop()
    count += 1
    if (typeof next !== 'object' || next === null) continue
    for (const inner of Object.values(next)) left.push(inner)
  }
  return count
}
