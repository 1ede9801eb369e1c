import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { emptyDisk } from '../support/empty-disk.ts'
import { LabPage } from '../support/lab-page.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)('labs are sorted, and several are started, stopped and deleted at once', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  for (const name of ['Alpha', 'Beta', 'Gamma']) {
    await service.call('POST', '/v2/projects', { name })
    await service.call('POST', `/v2/projects/${name}/nodes`, { name: 'PC1', node_type: 'pc' })
  }
  // A closed one is opened by its start.
  await service.call('POST', '/v2/projects/Beta/close')
  const lab = await LabPage.open(service.url)
  const { page } = lab
  const names = () => page.locator('.card-name').allInnerTexts()
  const order = page.getByLabel('Order of the labs')
  await page.getByRole('link', { name: 'Gamma' }).waitFor()
  expect(await names()).toEqual(['Alpha', 'Beta', 'Gamma'])
  await page.getByLabel('Select Beta').check()
  await page.getByLabel('Select Gamma').check()
  const bar = page.getByRole('group', { name: 'Selected labs' })
  await bar.getByText('2 selected').waitFor()
  expect(await accessibilityFaults(page)).toEqual([])
  await bar.getByRole('button', { name: 'Start' }).click()
  await page.getByText('2 labs started.').waitFor()
  await expect.poll(() => page.getByText('1 of 1 running').count()).toBe(2)
  await order.selectOption('Running first')
  await expect.poll(names).toEqual(['Beta', 'Gamma', 'Alpha'])
  await bar.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('2 labs stopped.').waitFor()
  await expect.poll(() => page.getByText('0 of 1 running').count()).toBe(3)

  // The order is kept in the browser; what is selected is not.
  await page.reload()
  await page.getByRole('link', { name: 'Gamma' }).waitFor()
  expect(await order.inputValue()).toBe('running')
  expect(await bar.count()).toBe(0)
  await page.getByLabel('Select Alpha').check()
  await bar.getByRole('button', { name: 'Select all' }).click()
  await bar.getByText('3 selected').waitFor()
  await page.getByLabel('Select Beta').uncheck()
  await bar.getByRole('button', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete 2 labs?' })
  await dialog.getByText('Alpha, Gamma').waitFor()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await expect.poll(names).toEqual(['Beta'])
  expect(lab.faults).toEqual([])
})

testWith(
  browser,
  requireProgram('qemu-system-x86_64'),
  requireProgram('qemu-img'),
)('a start of several labs says which of them failed, and why', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  for (const name of ['Good', 'Bad']) await service.call('POST', '/v2/projects', { name })
  await service.call('POST', '/v2/projects/Good/nodes', { name: 'PC1', node_type: 'pc' })
  const image = '/v2/compute/machine-emulator/images/router.qcow2'
  await service.fetch(image, { method: 'POST', body: emptyDisk() })
  const properties = { platform: 'x86_64', hda_disk_image: 'router.qcow2' }
  await service.call('POST', '/v2/projects/Bad/nodes', { name: 'R1', node_type: 'machine-emulator', properties })
  await rm(join(service.data, 'images/machine-emulator/router.qcow2'))
  const { page } = await LabPage.open(service.url)
  await page.getByLabel('Select Good').check()
  await page.getByLabel('Select Bad').check()
  await page.getByRole('group', { name: 'Selected labs' }).getByRole('button', { name: 'Start' }).click()
  await page.getByText('1 lab started.').waitFor()
  await page.locator('.toast.is-error', { hasText: /^1 of 2 labs did not start: Bad: .*router\.qcow2/ }).waitFor()
})

testWith(browser)('while the service is away the list says so, and it comes when the service is back', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v2/projects', { name: 'Alpha' })
  const { page } = await LabPage.open(service.url, '/#/doctor')
  await page.getByRole('heading', { name: 'Doctor' }).waitFor()
  await page.route('**/v2/**', (route) => route.abort('connectionrefused'))
  await page.getByRole('link', { name: 'Labs' }).click()
  await page.getByRole('status').getByText('The service does not answer. Trying again …').waitFor()
  expect(await page.getByText('No labs yet').count()).toBe(0)
  await page.unroute('**/v2/**')
  await page.getByRole('link', { name: 'Alpha' }).waitFor()
  expect(await page.getByText('The service does not answer').count()).toBe(0)
  expect(await page.locator('.toast').count()).toBe(0)
})

testWith(browser)('a page whose service does not say at first who the user is asks again', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { page } = await LabPage.open(service.url)
  await page.route('**/v2/session', (route) => route.abort('connectionrefused'))
  await page.reload()
  await page.getByText('The service does not answer. Trying again …').waitFor()
  await page.unroute('**/v2/session')
  await page.getByRole('heading', { name: 'Labs', exact: true }).waitFor()
})
