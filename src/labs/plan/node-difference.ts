import { differenceOf } from './difference-text.ts'
import type { PlannedChange } from './types.ts'

/** A difference between a node and the file, and the change that ends it. */
export interface NodeDifference {
  /** Whether a running node must be stopped for the change. */
  readonly needsStop: boolean
  /** For people. */
  readonly text: string
  readonly change: Partial<PlannedChange>
}

/** A property that gets another value. */
export function propertyDifference(key: string, value: unknown, before: unknown, needsStop: boolean): NodeDifference {
  const text = key === 'ports_mapping' ? 'ports' : differenceOf(key, before, value)
  return { needsStop, text, change: { properties: { [key]: value } } }
}

/** The change that ends all differences. */
export const changeOf = (differences: readonly NodeDifference[]): PlannedChange => {
  const changes = differences.map(({ change }) => change)
  return {
    ...Object.assign({}, ...changes),
    settings: Object.assign({}, ...changes.map(({ settings }) => settings)),
    properties: Object.assign({}, ...changes.map(({ properties }) => properties)),
    configs: changes.flatMap(({ configs = [] }) => configs),
  }
}

/** The differences in one line. Both coordinates make one. */
export const textOf = (differences: readonly NodeDifference[]): string =>
  [...new Set(differences.map(({ text }) => text))].join(', ')
