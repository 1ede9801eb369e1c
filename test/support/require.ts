import { findProgram } from '../../runtime/node/find-program.ts'

/**
 * Whether tests that need a program have to be skipped because it is not installed; the reason is printed. With
 * PATCHBAY_REQUIRE=all (or its name in the list there) a missing program is a failure instead.
 */
export function requireProgram(name: string): { readonly skip: boolean } {
  return requirement(name, findProgram(name) !== undefined, `${name}, which is not installed`)
}

/** The same for tests that only root can run; its name in the list is `root`. */
export function requireRoot(): { readonly skip: boolean } {
  return requirement('root', process.getuid?.() === 0, 'root, which this user is not')
}

function requirement(name: string, isMet: boolean, what: string): { readonly skip: boolean } {
  if (isMet) return { skip: false }
  const required = (process.env.PATCHBAY_REQUIRE ?? '').split(',')
  if (required.includes('all') || required.includes(name)) {
    throw new Error(`tests need ${what}, and PATCHBAY_REQUIRE wants it`)
  }
  process.stderr.write(`skipped: tests that need ${what}\n`)
  return { skip: true }
}
