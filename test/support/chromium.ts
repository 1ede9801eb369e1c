import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { launchChromium } from './launch-chromium.ts'

/** A Chromium that ends with the test. */
export async function startChromium(): Promise<Browser> {
  const browser = await launchChromium()
  onTestFinished(() => browser.close())
  return browser
}
