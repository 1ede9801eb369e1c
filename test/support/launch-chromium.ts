import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

/** Starts the Chromium of this machine, without a window and without requests of its own. */
export function launchChromium(): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  return chromium.launch({ executablePath: join(import.meta.dirname, 'steady-chromium.py'), args })
}
