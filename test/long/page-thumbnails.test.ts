import { expect } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const labs = 40

testWith(browser)('of a long list of labs, the maps of those in view are read, each once after an edit', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  for (let number = 10; number < 10 + labs; number++) {
    await service.call('POST', '/v2/projects', { name: `Lab ${number}` })
    await service.call('POST', `/v2/projects/Lab ${number}/nodes`, { name: 'PC1', node_type: 'pc', x: 0, y: 0 })
    if (number > 11) await service.call('POST', `/v2/projects/Lab ${number}/close`)
  }
  const { page } = await LabPage.open(service.url)
  const read: string[] = []
  page.on('request', (it) => it.url().endsWith('/topology') && read.push(it.url()))
  const card = (number: number) => page.getByRole('listitem').filter({ hasText: `Lab ${number}` })
  const picture = (number: number) => card(number).locator('.thumbnail img')
  await page.reload()
  await picture(10).waitFor()
  await picture(12).waitFor()
  const before = await picture(10).getAttribute('src')
  await picture(13).waitFor()
  expect(new Set(read).size).toBe(read.length)
  expect(read.length).toBeLessThan(labs / 2)

  await page.emulateMedia({ colorScheme: 'dark' })
  await expect.poll(() => picture(10).getAttribute('src'), { timeout: hangMs }).not.toBe(before)
  const known = read.length
  await service.call('POST', '/v2/projects/Lab 10/nodes', { name: 'PC2', node_type: 'pc', x: 300, y: 0 })
  await expect.poll(() => picture(10).getAttribute('src'), { timeout: hangMs }).toContain('PC2')
  expect(read).toHaveLength(known + 1)

  await card(10 + labs - 1).scrollIntoViewIfNeeded()
  await picture(10 + labs - 1).waitFor()
  expect(read.length).toBeLessThan(labs)
})
