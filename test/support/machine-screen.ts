import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { hangMs } from './limits.ts'

/** A machine without a disk, whose firmware waits for Escape, and then for a number. */
export const waitingMachine = {
  node_type: 'machine-emulator',
  console_type: 'vnc',
  properties: { platform: 'x86_64', ram: 32, options: '-accel tcg -boot menu=on,splash-time=60000' },
}

/** The screen of a machine on the page. */
export class MachineScreen {
  readonly canvas: Locator
  readonly #page: Page

  constructor(page: Page, name: string) {
    this.#page = page
    this.canvas = page.getByRole('region', { name: `Screen of ${name}` }).locator('canvas')
  }

  /** Waits until the screen changes no more; a cursor that blinks has two pictures. */
  async settled(): Promise<Set<string>> {
    for (let last = new Set<string>(); ; ) {
      const seen = new Set<string>()
      for (let count = 0; count < 10; count++) {
        seen.add(await this.#picture())
        await this.#page.waitForTimeout(150)
      }
      if (seen.size <= 2 && [...seen].every((it) => last.has(it))) return last
      last = new Set([...seen].slice(-2))
    }
  }

  /** Waits until the screen is none of the pictures any more. */
  async changesFrom(before: ReadonlySet<string>): Promise<void> {
    await expect.poll(async () => before.has(await this.#picture()), { timeout: hangMs }).toBe(false)
  }

  #picture(): Promise<string> {
    return this.canvas.evaluate((it) => (it as unknown as { toDataURL(): string }).toDataURL())
  }
}
