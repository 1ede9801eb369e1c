import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'the first token is made on the page of a service that asks for none, which says what it is for',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { page, faults } = await LabPage.open(service.url, '/#/tokens')
    await page.getByText('This service asks nobody for a token').waitFor()
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill('teacher')
    // The role of most tokens is chosen already, and a lifetime is a word.
    expect(await page.getByLabel('Role').inputValue()).toBe('operate')
    await page.getByLabel('Role').selectOption('admin')
    await page.getByLabel('Expires').selectOption('1 week')
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await accessibilityFaults(page)).toEqual([])
    }
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('row', { name: /^teacher admin all/ }).waitFor()
    const [token] = await service.call<{ created_at: string; expires_at: string }[]>('GET', '/v2/tokens')
    expect(Date.parse(token?.expires_at ?? '') - Date.parse(token?.created_at ?? '')).toBe(7 * 86_400_000)
    expect(faults).toEqual([])
  },
)
