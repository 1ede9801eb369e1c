import { expect } from 'vitest'
import { requireChromium, startChromium } from '../support/chromium.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'the reference page shows the interface in a browser, and asks nobody else',
  async () => {
    const service = await TestService.start()
    const chrome = await startChromium()
    const page = await chrome.newPage()
    const foreign: string[] = []
    const errors: string[] = []
    page.on('request', (request) => {
      if (
        !request.url().startsWith(service.url) &&
        !request.url().startsWith('data:') &&
        !request.url().startsWith('blob:')
      )
        foreign.push(request.url())
    })
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text())
    })
    await page.goto(`${service.url}/docs`)
    const wanted = page.locator('.nav-bar-path', { hasText: 'Attach a NIO to a port' })
    // Groups are closed at first.
    const group = page.locator('rapi-doc .nav-bar-tag-and-paths', { has: wanted }).first()
    await group.locator('.nav-bar-tag').click({ timeout: hangMs })
    const operation = group.locator('.nav-bar-path', { hasText: 'Attach a NIO to a port' }).first()
    await operation.click({ timeout: hangMs })
    const answers = page.locator('rapi-doc api-response')
    await answers.filter({ hasText: '201' }).waitFor({ timeout: hangMs })
    expect(await page.title()).toBe('Patchbay reference')
    expect(foreign).toEqual([])
    expect(errors).toEqual([])
  },
  5 * hangMs,
)
