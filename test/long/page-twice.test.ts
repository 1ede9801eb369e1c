import type { Locator } from 'playwright-core'
import { expect } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

/** Presses a button, and again before the first press has done anything. */
const pressTwice = (button: Locator) =>
  button.evaluate((it) => {
    for (let times = 0; times < 2; times++) (it as HTMLButtonElement).click()
  })

testWith(browser)('a dialog or a form whose button is pressed twice at once sends once', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v2/projects', { name: 'Alpha' })
  const lab = await LabPage.open(service.url)
  const { page } = lab
  const sent: string[] = []
  page.on('request', (it) => it.method() === 'POST' && sent.push(new URL(it.url()).pathname))
  const posts = (end: string) => sent.filter((it) => it.endsWith(end)).length

  await page.getByRole('button', { name: 'Duplicate Alpha' }).click()
  const dialog = page.getByRole('dialog')
  await pressTwice(dialog.getByRole('button', { name: 'Duplicate' }))
  await dialog.waitFor({ state: 'detached' })
  expect(posts('/duplicate')).toBe(1)

  await page.goto(`${service.url}/#/tokens`)
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByLabel('Name').fill('teacher')
  await pressTwice(page.getByRole('button', { name: 'Create', exact: true }))
  await page.getByRole('button', { name: 'Done' }).click()
  expect(posts('/tokens')).toBe(1)

  await page.goto(`${service.url}/#/labs/Alpha`)
  await page.getByRole('button', { name: 'Add node type' }).click()
  await dialog.getByRole('button', { name: 'Switch' }).click()
  await dialog.getByLabel('Name', { exact: true }).fill('Floor')
  await pressTwice(dialog.getByRole('button', { name: 'Add', exact: true }))
  await page.getByRole('button', { name: 'Change Floor' }).waitFor()
  expect(posts('/templates')).toBe(1)
  expect(lab.faults).toEqual([])
})
