import { findProgram } from '../../runtime/node/find-program.ts'

/**
 * Whether tests that need a program have to be skipped because it is not installed; the reason is printed. With
 * PATCHBAY_REQUIRE=all (or its name in the list there) a missing program is a failure instead.
 */
export function requireProgram(name: string): { readonly skip: boolean } {
  if (findProgram(name) !== undefined) return { skip: false }
  const required = (process.env.PATCHBAY_REQUIRE ?? '').split(',')
  if (required.includes('all') || required.includes(name))
    throw new Error(`${name} is not installed, and PATCHBAY_REQUIRE wants it`)
  process.stderr.write(`skipped: tests that need ${name}, which is not installed\n`)
  return { skip: true }
}
