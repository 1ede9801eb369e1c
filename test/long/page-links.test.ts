import { expect } from 'vitest'
import type { LabLink } from '../../src/model/lab/link.ts'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'a link drops frames by an expression that is checked, says why frames were dropped, and has a line for Wireshark',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', user: 'anna', password: 'geheim-geheim' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    await page.getByText('User and password').click()
    await page.getByLabel('User', { exact: true }).fill('anna')
    await page.getByLabel('Password', { exact: true }).fill('geheim-geheim')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await lab.newLab('Filtered')
    lab.faults.length = 0
    await lab.place('PC', { x: 200, y: 320 }, 'PC1')
    await lab.place('PC', { x: 500, y: 320 }, 'PC2')
    await lab.draw('PC1', 'PC2')
    await page.getByRole('button', { name: 'Start all nodes' }).click()
    await lab.node('PC2', ', pc, running').waitFor()
    await lab.node('PC1', ', pc, running').waitFor()
    await lab.link('PC1', 'PC2').focus()

    const filter = page.getByLabel('Drop frames that match')
    // A compute of an older version has no checks.
    const checks = '**/check_filters'
    await page.route(checks, (route) => route.fulfill({ status: 404, json: { message: 'no such path', status: 404 } }))
    await filter.fill('tcp')
    await page.getByText('It cannot be checked here').waitFor()
    expect(await filter.getAttribute('aria-invalid')).toBe('false')
    expect(lab.faults.filter((it) => !it.includes('check_filters'))).toEqual([])
    lab.faults.length = 0
    await page.unroute(checks)
    await filter.fill('tcp port 80')
    await page.getByText('Apply it to drop these frames').waitFor()
    // What is typed is checked, and says where the fault is; nothing is applied.
    await filter.fill('tcp prot 80')
    await page.getByRole('status').getByText('at character 5 (near "prot")').waitFor()
    expect(await page.locator('.badge').count()).toBe(0)
    await page.keyboard.press('Enter')
    const alert = page.getByRole('complementary', { name: 'Link' }).getByRole('alert')
    await alert.getByText('filters.bpf').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await filter.fill('arp')
    await page.getByRole('button', { name: 'Apply' }).click()
    await alert.waitFor({ state: 'detached' })
    await page.locator('.badge', { hasText: 'bpf' }).waitFor()
    // A preset is about the line, and leaves the expression.
    await page.getByRole('button', { name: 'DSL' }).click()
    await page.locator('.badge', { hasText: '15 ms' }).waitFor()
    expect(await filter.inputValue()).toBe('arp')

    const one = await lab.openConsole('PC1')
    await lab.shows('PC1>')
    await one.pressSequentially('ip 10.0.0.1/24\r')
    await lab.shows('10.0.0.1 255.255.255.0')
    await one.pressSequentially('ping 10.0.0.2 -c 1\r')
    await lab.link('PC1', 'PC2').focus()
    await page
      .getByRole('list', { name: 'Dropped from PC1 to PC2' })
      .getByText(/\d+: the filter/)
      .waitFor()

    await page.getByText('Open in Wireshark').click()
    const line = await page.locator('.fix code').innerText()
    const [, address = ''] = /"(http[^"]+)"/.exec(line) ?? []
    expect(line).toBe(`curl -sN -X POST -H "Authorization: Bearer $PATCHBAY_TOKEN" "${address}" | wireshark -k -i -`)
    const stream = await service.fetch(new URL(address).pathname + new URL(address).search, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('anna:geheim-geheim')}` },
    })
    expect(stream.status).toBe(200)
    expect(stream.headers.get('content-type')).toBe('application/x-pcapng')
    await stream.body?.cancel()
    expect(lab.faults.filter((it) => !/status of 400/.test(it))).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'an end of a link is plugged into another port, with its impairment, and undo plugs it back',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    await lab.newLab('Ports')
    await lab.place('PC', { x: 200, y: 320 }, 'PC1')
    await lab.place('Switch', { x: 500, y: 320 }, 'Switch1')
    await lab.draw('PC1', 'Switch1')
    const ends = async () => {
      const [link] = await service.call<LabLink[]>('GET', '/v2/projects/Ports/links')
      return link?.nodes.map(({ adapter_number, port_number }) => `${adapter_number}/${port_number}`)
    }
    await lab.link('PC1', 'Switch1').focus()
    await page.getByRole('button', { name: 'DSL' }).click()
    await page.locator('.badge', { hasText: '15 ms' }).waitFor()
    // A pc has one port, and nothing to choose.
    expect(await page.getByLabel('Port of PC1').count()).toBe(0)
    await page.getByLabel('Port of Switch1').selectOption('Ethernet5')
    await expect.poll(ends).toEqual(['0/0', '0/5'])
    await page.locator('.badge', { hasText: '15 ms' }).waitFor()
    await expect.poll(() => page.getByLabel('Port of Switch1').inputValue()).toBe('Ethernet5')
    expect(await accessibilityFaults(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.locator('header').click()
    await page.keyboard.press('Control+z')
    await expect.poll(ends).toEqual(['0/0', '0/0'])
    expect(lab.faults).toEqual([])
  },
)

testWith(browser)('a link to a node with several free ports asks for one, by mouse and by keys', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await LabPage.open(service.url)
  const { page } = lab
  const { keyboard } = page
  await lab.newLab('Asked')
  await lab.place('PC', { x: 200, y: 200 }, 'PC1')
  await lab.place('PC', { x: 200, y: 450 }, 'PC2')
  await lab.place('Switch', { x: 500, y: 200 }, 'Switch1')
  await lab.place('Switch', { x: 500, y: 450 }, 'Switch2')
  const ends = async () => {
    const links = await service.call<LabLink[]>('GET', '/v2/projects/Asked/links')
    return links.map(({ nodes }) => nodes.map(({ port_number }) => port_number))
  }
  const list = page.getByRole('dialog', { name: /^Ports of the link/ })
  const focused = () => page.evaluate('document.activeElement.textContent')
  // By the mouse: the first port has the focus, and a click takes another one.
  await lab.drag('PC1', 'Switch1')
  await list.getByText('PC1 Ethernet0 to Switch1').waitFor()
  expect(await focused()).toBe('Ethernet0')
  expect(await list.getByRole('combobox').count()).toBe(0)
  expect(await accessibilityFaults(page)).toEqual([])
  await keyboard.press('Escape')
  await list.waitFor({ state: 'detached' })
  await lab.drag('PC1', 'Switch1')
  await list.getByRole('button', { name: 'Ethernet5' }).click()
  await expect.poll(ends).toEqual([[0, 5]])

  // By keys, from a port that was chosen: the hint names it.
  await lab.node('Switch2').focus()
  await page.getByRole('listitem').filter({ hasText: 'Ethernet2' }).getByRole('button', { name: 'Connect' }).click()
  await page.getByText('Link from Switch2 Ethernet2: click the other node').waitFor()
  await lab.node('Switch1').focus()
  await keyboard.press('Enter')
  await list.getByText('Switch2 Ethernet2 to Switch1').waitFor()
  for (const key of ['ArrowDown', 'ArrowDown']) await keyboard.press(key)
  expect(await focused()).toBe('Ethernet2')
  await keyboard.press('Enter')
  await expect.poll(ends).toEqual(expect.arrayContaining([[2, 2]]))
  expect(await lab.node('Switch1').evaluate((it) => it === document.activeElement)).toBe(true)

  // Both ends, by a click on the second node; a press beside the list cancels.
  await keyboard.press('c')
  await lab.node('Switch2').click()
  await list.getByLabel('Port of Switch1').selectOption('Ethernet3')
  await list.getByRole('button', { name: 'Ethernet7' }).click()
  await expect.poll(ends).toEqual(expect.arrayContaining([[3, 7]]))
  await lab.drag('Switch1', 'Switch2')
  await list.waitFor()
  await page.mouse.click(700, 300)
  await list.waitFor({ state: 'detached' })
  expect(await ends()).toHaveLength(3)
  // With one free port at each end, and with Alt, nothing is asked.
  await lab.node('PC2').focus()
  await keyboard.press('c')
  await lab.node('Switch2').focus()
  await keyboard.press('Alt+Enter')
  await expect.poll(ends).toEqual(expect.arrayContaining([[0, 0]]))
  expect(lab.faults).toEqual([])
})
