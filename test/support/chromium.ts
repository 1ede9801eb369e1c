import { type Browser, chromium } from 'playwright-core'
import { onTestFinished } from 'vitest'

/** The Chromium of this machine, without a window and without requests of its own; it ends with the test. */
export async function startChromium(): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args })
  onTestFinished(() => browser.close())
  return browser
}
