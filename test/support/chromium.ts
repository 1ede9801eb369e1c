import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { launchChromium } from './launch-chromium.ts'
import { requireThing } from './require.ts'
import type { Requirement } from './test-with.ts'

/** The first of them has no user interface: of the processor time for a page it takes a third. */
const program = ['chromium-headless-shell', 'chromium'].find((name) => findProgram(name) !== undefined)

/** What tests of pages in a browser need; see `requireProgram`. */
export function requireChromium(): Requirement {
  const missing = 'neither chromium-headless-shell nor chromium is installed'
  return requireThing('chromium', program === undefined ? missing : undefined)
}

let launched: Promise<Browser> | undefined

/**
 * The Chromium of this process: a start takes seconds of a processor. What is opened in it ends with the test; pages of `browser.newPage()` have
 * a storage of their own each. Playwright ends it with the process.
 */
export async function startChromium(): Promise<Browser> {
  launched ??= launchChromium(program)
  let browser = await launched
  if (!browser.isConnected()) {
    launched = launchChromium(program)
    browser = await launched
  }
  onTestFinished(async () => {
    for (const context of browser.contexts()) await context.close()
  })
  return browser
}
