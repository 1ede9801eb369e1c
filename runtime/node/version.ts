import { createRequire } from 'node:module'

declare const PATCHBAY_VERSION: string | undefined

/** The version of the package: put in by the build, read from package.json in a checkout. */
export const version: string =
  typeof PATCHBAY_VERSION === 'string'
    ? PATCHBAY_VERSION
    : (createRequire(import.meta.url)('../../package.json') as { version: string }).version
