import { describe, type SuiteAPI, type TestAPI, test } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** Why a test is left out; `left-out.ts` tells it. */
    leftOut?: string
  }
}

/** Something that tests need; `missing` is why it is not there, if so. */
export interface Requirement {
  readonly skip: boolean
  readonly missing: string | undefined
}

/** What makes tests apply; `otherwise` is why they do not. */
export const provided = (holds: boolean, otherwise: string): Requirement => ({
  skip: !holds,
  missing: holds ? undefined : otherwise,
})

/** `test` for tests that need all of this: where something is missing they are skipped, and shown with the reason. */
export const testWith = (...needed: readonly (Requirement | false)[]): TestAPI => where(test, needed)

/** The same of `describe`. What is in it may be declared, and is not run. */
export const describeWith = (...needed: readonly (Requirement | false)[]): SuiteAPI => where(describe, needed)

function where<T extends TestAPI | SuiteAPI>(api: T, needed: readonly (Requirement | false)[]): T {
  const leftOut = needed.map((it) => (it === false ? undefined : it.missing)).find((it) => it !== undefined)
  if (leftOut === undefined) return api
  const call = api as unknown as Declare & { for: Table; each: Table }
  const declare = skipped(call, leftOut)
  return Object.assign(declare, {
    for: (...cases: unknown[]) => skipped(call.for(...cases), leftOut),
    each: (...cases: unknown[]) => skipped(call.each(...cases), leftOut),
  }) as unknown as T
}

type Declare = (name: string, options: object, body: unknown) => void
type Table = (...cases: unknown[]) => Declare

/** Declares with the options `skip` and `meta`, whether options were given or not. */
const skipped =
  (declare: Declare, leftOut: string) =>
  (name: string, ...rest: readonly unknown[]): void => {
    const options = rest.find((it) => typeof it === 'object') ?? {}
    const body = rest.find((it) => typeof it === 'function')
    declare(name, { ...options, skip: true, meta: { leftOut } }, body)
  }
