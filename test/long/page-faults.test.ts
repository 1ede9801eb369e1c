import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { phone } from '../support/phone-lab.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

/** A lab with two PCs beside each other, in the page. */
async function twoPcs(name: string) {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v2/projects', { name })
  for (const [index, x] of [-150, 150].entries())
    await service.call('POST', `/v2/projects/${name}/nodes`, { name: `PC${index + 1}`, node_type: 'pc', x, y: 0 })
  const lab = await LabPage.open(service.url, `/#/labs/${name}`)
  for (const name of ['PC1', 'PC2']) await lab.node(name).waitFor()
  return { service, lab, page: lab.page, keyboard: lab.page.keyboard }
}

testWith(browser)('node types that could not be read come when the service is back, and no message stays', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v2/projects', { name: 'Away' })
  const lab = await LabPage.open(service.url)
  const { page } = lab
  await page.getByRole('link', { name: 'Away' }).waitFor()
  // As while the service is away: the lab is opened meanwhile.
  await page.route('**/v2/**', (route) => route.abort('connectionrefused'))
  await page.getByRole('link', { name: 'Away' }).click()
  await page.getByText('Reading …').waitFor()
  await page.getByText('Connection lost').waitFor()
  expect(await page.getByText('0 nodes').count()).toBe(0)
  await page.unroute('**/v2/**')
  await page.getByRole('button', { name: 'PC', exact: true }).waitFor()
  expect(await page.locator('.toast').allInnerTexts()).toEqual([])
})

testWith(browser)('after a link by keys, keys are for the node that has the focus', async () => {
  const { lab, keyboard } = await twoPcs('Focus')
  await lab.node('PC1').focus()
  await keyboard.press('c')
  await keyboard.press('Tab')
  await keyboard.press('Enter')
  await lab.link('PC1', 'PC2').waitFor({ state: 'attached' })
  expect(await lab.node('PC2').evaluate((it) => it === document.activeElement)).toBe(true)
  await keyboard.press('s')
  await lab.node('PC2', ', pc, running').waitFor()
  await lab.node('PC1', ', pc, stopped').waitFor()
})

testWith(browser)('a number that a link cannot have stays in its field, with what would be right', async () => {
  const { lab, page } = await twoPcs('Loss')
  await lab.draw('PC1', 'PC2')
  await lab.link('PC1', 'PC2').focus()
  const loss = page.getByRole('spinbutton', { name: 'Loss' })
  await loss.fill('150')
  await loss.press('Enter')
  await page.getByRole('alert').getByText('Loss: expected 0 to 100 %.').waitFor()
  expect(await loss.inputValue()).toBe('150')
  expect(await page.locator('.badge').count()).toBe(0)
  await loss.fill('15')
  await loss.press('Enter')
  await page.locator('.badge', { hasText: '15 %' }).waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
})

testWith(browser)(
  'a configuration that was typed is there after other screens, and says when it takes effect',
  async () => {
    const { lab, page } = await twoPcs('Typed')
    const open = async () => {
      await lab.node('PC1').focus()
      await page.getByText('Configuration', { exact: true }).click()
      const config = page.getByLabel('Configuration of PC1')
      await expect.poll(() => config.isEnabled(), { timeout: hangMs }).toBe(true)
      return config
    }
    const config = await open()
    expect((await config.boundingBox())?.height).toBeGreaterThan(250)
    await config.fill('ip 10.0.0.7/24\n')
    await page.getByRole('link', { name: 'All labs' }).click()
    await page.getByText('the page keeps them until it is closed').waitFor()
    await page.getByRole('link', { name: 'Typed' }).click()
    await lab.node('PC1').waitFor()
    expect(await (await open()).inputValue()).toBe('ip 10.0.0.7/24\n')
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByRole('button', { name: 'Start all nodes' }).click()
    await page.getByText('It takes effect when the node starts next.').waitFor()
  },
)

testWith(browser)(
  'the first letter that is typed into a new dialog is in its field, and replaces the text there',
  async () => {
    const { page, keyboard } = await twoPcs('Letters')
    await page.goto(`${new URL(page.url()).origin}/#/`)
    await page.getByRole('link', { name: 'Letters' }).waitFor()
    await page.getByRole('button', { name: 'New lab' }).focus()
    await keyboard.press('Enter')
    // As soon as it is seen: the part of the page that has it may just be coming.
    await page.getByRole('dialog').waitFor()
    await keyboard.type('Demo')
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Demo')
    await keyboard.press('Escape')
    await page
      .getByRole('button', { name: /^Rename/ })
      .first()
      .click()
    await page.getByRole('dialog').waitFor()
    await keyboard.type('Demo')
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Demo')
  },
)

testWith(browser)('an address that does not exist is a page in a browser, and JSON for programs', async () => {
  const { service, page } = await twoPcs('Nowhere')
  const answer = await page.goto(`${service.url}/nonesuch`)
  expect(answer?.status()).toBe(404)
  await page.getByRole('heading', { name: 'No such page' }).waitFor()
  await page.getByRole('link', { name: 'To the labs' }).click()
  await page.getByRole('link', { name: 'Nowhere' }).waitFor()
  const json = await service.fetch('/nonesuch')
  expect(await json.json()).toMatchObject({ status: 404 })
})

testWith(browser)('packets above a console on a phone show several frames', async () => {
  const { service, lab, page, keyboard } = await twoPcs('Low')
  for (const number of [1, 2])
    await service.call('PUT', `/v2/projects/Low/nodes/PC${number}`, {
      properties: { startup_script: `ip 10.0.0.${number}/24` },
    })
  await lab.draw('PC1', 'PC2')
  await page.setViewportSize(phone.viewport)
  await page.getByRole('button', { name: 'Start all nodes' }).click()
  await lab.node('PC2', ', pc, running').waitFor()
  await lab.link('PC1', 'PC2').focus()
  await keyboard.press('p')
  await page.getByLabel('Filter').waitFor()
  await lab.node('PC1').focus()
  await keyboard.press('o')
  await page.getByRole('textbox', { name: 'Console of PC1' }).waitFor()
  await page.getByRole('button', { name: 'Side by side' }).click()
  await page.getByRole('textbox', { name: 'Console of PC1' }).pressSequentially('ping 10.0.0.2 -c 4\r')
  const rows = page.locator('.packet-rows')
  const inSight = async () => {
    const box = await rows.boundingBox()
    const all = await rows
      .locator('.packet-row')
      .evaluateAll((them) => them.map((it) => it.getBoundingClientRect().toJSON() as DOMRect))
    return all.filter((it) => box !== null && it.top >= box.y - 1 && it.bottom <= box.y + box.height + 1).length
  }
  await expect.poll(inSight, { timeout: hangMs }).toBeGreaterThanOrEqual(3)
  expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(1)
  expect(await accessibilityFaults(page)).toEqual([])
})

testWith(browser)('counters of ports with many frames are whole, and cover no other port', async () => {
  const { lab, page } = await twoPcs('Counters')
  await lab.draw('PC1', 'PC2')
  const traffic = {
    frames: 1_234_567_890,
    bytes: 1_234_567_890_123,
    dropped: 1_234_567,
    frames_per_s: 0,
    bits_per_s: 0,
  }
  await page.route('**/links', async (route) => {
    const response = await route.fetch()
    const links = (await response.json()) as object[]
    await route.fulfill({ response, json: links.map((it) => ({ ...it, traffic_ab: traffic, traffic_ba: traffic })) })
  })
  for (const width of [390, 800, 1440]) {
    await page.setViewportSize({ width, height: 900 })
    await page.reload()
    await lab.node('PC1').focus()
    const parts = page.locator('.ports small > *')
    await parts.filter({ hasText: 'dropped' }).waitFor()
    const faults = await page.locator('.ports').evaluate((list) => {
      const inside = list.getBoundingClientRect()
      const rows = [...list.querySelectorAll('li')].map((it) => it.getBoundingClientRect())
      const texts = [...list.querySelectorAll('small > *')]
      return [
        ...rows
          .slice(1)
          .filter((row, index) => row.top < (rows[index]?.bottom ?? 0) - 1)
          .map(() => 'a row covers another'),
        ...texts
          .filter((it) => it.getBoundingClientRect().right > inside.right + 1)
          .map((it) => `cut: ${it.textContent}`),
        ...texts.filter((it) => it.getBoundingClientRect().height > 24).map((it) => `wrapped: ${it.textContent}`),
        ...texts
          .filter(
            (it) => it.getBoundingClientRect().bottom > (it.closest('li')?.getBoundingClientRect().bottom ?? 0) + 1,
          )
          .map((it) => `beside its row: ${it.textContent}`),
      ]
    })
    expect(faults).toEqual([])
  }
})
