import { createRequire } from 'node:module'

declare const PATCHBAY_VERSION: string | undefined
declare const PATCHBAY_BUILD: string | undefined

/** The version of the package: put in by the build, read from package.json in a checkout. */
export const version: string =
  typeof PATCHBAY_VERSION === 'string'
    ? PATCHBAY_VERSION
    : (createRequire(import.meta.url)('../../../package.json') as { version: string }).version

/** Tells this build of the program from any other: a digest of its sources, put in by the build; `source` in a checkout. */
export const build: string = typeof PATCHBAY_BUILD === 'string' ? PATCHBAY_BUILD : 'source'
