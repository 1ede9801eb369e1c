import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { launchChromium } from './launch-chromium.ts'

let launched: Promise<Browser> | undefined

/**
 * The Chromium of this process: a start takes seconds of a processor. What is opened in it ends with the test; pages of `browser.newPage()` have
 * a storage of their own each. Playwright ends it with the process.
 */
export async function startChromium(): Promise<Browser> {
  launched ??= launchChromium()
  let browser = await launched
  if (!browser.isConnected()) {
    launched = launchChromium()
    browser = await launched
  }
  onTestFinished(async () => {
    for (const context of browser.contexts()) await context.close()
  })
  return browser
}
