import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

/** Starts a Chromium of this machine, without a window and without requests of its own. */
export function launchChromium(program = 'chromium'): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  const env = { ...process.env, STEADY_CHROMIUM: program }
  return chromium.launch({ executablePath: join(import.meta.dirname, 'steady-chromium.py'), args, env })
}
