import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'an empty list offers labs, each with its map: one click makes and opens it; a new lab can be one of them later',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    const offered = page.getByRole('list', { name: 'Example labs' }).getByRole('button')
    await offered.first().waitFor()
    expect(await offered.count()).toBe(7)
    // The pictures are drawn by the page.
    const widths = await offered
      .locator('img')
      .evaluateAll((all) => all.map((it) => (it as HTMLImageElement).naturalWidth))
    expect(widths.every((width) => width > 300)).toBe(true)
    await page.getByText('Coming from GNS3, containerlab, CML?').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])

    await page.getByRole('button', { name: /^Two PCs/ }).press('Enter')
    await lab.node('PC1').waitFor()
    await lab.link('PC1', 'PC2').waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Start all' }).click()
    await lab.node('PC2', ', pc, running').waitFor()
    await page.getByRole('link', { name: 'All labs' }).click()
    await page.getByRole('link', { name: 'two-pcs' }).waitFor()
    // With a lab in it, the list offers none.
    expect(await offered.count()).toBe(0)
    // Its card has the map, also while the lab is closed and the page was never in it.
    const picture = page.getByRole('listitem').filter({ hasText: 'two-pcs' }).locator('.thumbnail img')
    await picture.waitFor()
    await page.getByRole('button', { name: 'Close', exact: true }).click()
    await page.getByText('closed').waitFor()
    await page.reload()
    await picture.waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'New lab' }).click()
    await offered.first().waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('textbox', { name: 'Name' }).fill('My exercise')
    await page.getByRole('button', { name: /^Repair/ }).click()
    await lab.node('PRINTER').waitFor()
    expect(page.url()).toBe(`${service.url}/#/labs/my-exercise`)
    await page.getByRole('button', { name: 'Show or hide the tasks' }).waitFor()
    expect(lab.faults).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'an example whose routers need a guest is made, and the page says where the guest comes from',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    await page.getByRole('button', { name: /^OSPF/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Import' })
    await dialog.getByText('2 of 5 nodes can run').waitFor()
    await dialog.getByText('examples/guests/make.sh').first().waitFor()
    expect(await dialog.getByText('Upload frr.img').count()).toBe(3)
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Open the lab' }).click()
    for (const name of ['R1', 'R2', 'R3', 'PC1', 'PC2']) await lab.node(name).waitFor()
    await lab.link('R1', 'R2').waitFor({ state: 'attached' })
  },
  120_000,
)
