import { expect } from 'vitest'
import { LabPage } from '../support/lab-page.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireProgram('chromium')
const embedded = { 'pc.engine': 'embedded' }

testWith(browser)(
  'a first lab: nodes, links, a ping, a delay in it, and undo',
  async () => {
    const service = await TestService.start(embedded)
    const lab = await LabPage.open(service.url)
    const { page } = lab
    await lab.newLab('First lab')
    await lab.place('PC', { x: 200, y: 320 }, 'PC1')
    await lab.place('Switch', { x: 380, y: 180 }, 'Switch1')
    await lab.place('PC', { x: 560, y: 320 }, 'PC2')
    await lab.draw('PC1', 'Switch1')
    await lab.draw('PC2', 'Switch1')
    await page.getByRole('button', { name: 'Start all nodes' }).click()
    await lab.node('PC1', ', pc, started').waitFor()
    await lab.node('PC2', ', pc, started').waitFor()

    const two = await lab.openConsole('PC2')
    await lab.shows('VPCS>')
    await two.pressSequentially('ip 10.0.0.2/24\r')
    await lab.shows('10.0.0.2 255.255.255.0')
    const one = await lab.openConsole('PC1')
    await lab.shows('VPCS>')
    await one.pressSequentially('ip 10.0.0.1/24\r')
    await lab.shows('10.0.0.1 255.255.255.0')
    await one.pressSequentially('ping 10.0.0.2 -c 1\r')
    await lab.shows(/icmp_seq=1 ttl=64 time=\d{1,2}\.\d+ ms/)

    await lab.link('PC1', 'Switch1').focus()
    await page.getByText('Frames pass both ways.').waitFor()
    await page.getByLabel('Delay', { exact: true }).fill('100')
    await page.keyboard.press('Enter')
    await page.locator('.badge', { hasText: '100 ms' }).waitFor()
    await one.pressSequentially('clear\rping 10.0.0.2 -c 1\r')
    await lab.shows(/icmp_seq=1 ttl=64 time=2\d\d\.\d+ ms/)

    await page.getByRole('button', { name: 'Packets' }).click()
    const packets = page.getByRole('region', { name: 'Packets of PC1 – Switch1' })
    await packets.getByText('No frames yet').waitFor()
    await page.getByRole('button', { name: 'PC1', exact: true }).first().click()
    await one.pressSequentially('ping 10.0.0.2 -c 1\r')
    await page.getByRole('button', { name: 'PC1 – Switch1', exact: true }).click()
    await packets.getByLabel('Filter').fill('icmp reply')
    await packets.getByRole('option').first().click()
    await packets.getByText('Internet Protocol Version 4', { exact: false }).first().waitFor()

    await lab.node('PC1').focus()
    await page.keyboard.press('Control+z')
    await page.locator('.badge').waitFor({ state: 'detached' })
    expect(lab.faults).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'a lab is made by the keyboard alone, and another window follows it',
  async () => {
    const service = await TestService.start(embedded)
    await service.call('POST', '/v2/projects', { name: 'Keys' })
    const other = await LabPage.open(service.url, '/#/labs/Keys')
    const lab = await LabPage.open(service.url, '/#/labs/Keys')
    const { keyboard } = lab.page
    await lab.page.getByText('An empty lab').waitFor()
    for (const name of ['PC1', 'PC2']) {
      await keyboard.press('Control+k')
      await lab.page.getByPlaceholder('Node, command or template').pressSequentially('add pc')
      await keyboard.press('Enter')
      await lab.node(name).waitFor()
    }
    await lab.node('PC1').focus()
    await keyboard.press('c')
    await lab.node('PC2').focus()
    await keyboard.press('Enter')
    await other.link('PC1', 'PC2').waitFor({ state: 'attached' })

    await lab.node('PC1').focus()
    const before = await other.node('PC1').getAttribute('transform')
    await keyboard.press('ArrowLeft')
    await keyboard.press('ArrowLeft')
    await expect.poll(() => other.node('PC1').getAttribute('transform')).not.toBe(before)
    await keyboard.press('s')
    await other.node('PC1', ', pc, started').waitFor()
    await keyboard.press('Enter')
    await lab.shows('VPCS>')
    await lab.page.keyboard.type('show ip\r')
    await lab.shows('GATEWAY')

    await lab.node('PC2').focus()
    await keyboard.press('Delete')
    await other.node('PC2').waitFor({ state: 'detached' })
    await lab.page.locator('header').click()
    await keyboard.press('Control+z')
    await other.node('PC2').waitFor()
    await other.link('PC1', 'PC2').waitFor({ state: 'attached' })
    expect([...lab.faults, ...other.faults]).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'a page asks for credentials where the service needs them',
  async () => {
    const service = await TestService.start({ ...embedded, user: 'anna', password: 'geheim-geheim' })
    const lab = await LabPage.open(service.url)
    await lab.page.getByText('User and password').click()
    await lab.page.getByLabel('User', { exact: true }).fill('anna')
    await lab.page.getByLabel('Password', { exact: true }).fill('wrong')
    await lab.page.getByRole('button', { name: 'Sign in' }).click()
    await lab.page.getByRole('alert').waitFor()
    await lab.page.getByLabel('Password', { exact: true }).fill('geheim-geheim')
    await lab.page.getByRole('button', { name: 'Sign in' }).click()
    await lab.newLab('Mine')
    await lab.place('PC', { x: 200, y: 200 }, 'PC1')
  },
  120_000,
)
