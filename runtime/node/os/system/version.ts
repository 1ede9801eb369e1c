import { createRequire } from 'node:module'

declare const PATCHBAY_VERSION: string | undefined
declare const PATCHBAY_BUILD: string | undefined

/** The version of the package: inserted by the build, read from package.json in a checkout. */
export const version: string =
  typeof PATCHBAY_VERSION === 'string'
    ? PATCHBAY_VERSION
    : (createRequire(import.meta.url)('../../../../package.json') as { version: string }).version

/** Identifies this build: a digest of the sources, inserted by the build; `source` in a checkout. */
export const build: string = typeof PATCHBAY_BUILD === 'string' ? PATCHBAY_BUILD : 'source'
