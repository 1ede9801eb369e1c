import { expect } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { firstLab } from '../support/first-lab.ts'
import { keyboardLab } from '../support/keyboard-lab.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const embedded = { 'pc.engine': 'embedded' }

testWith(browser)(
  'a first lab: nodes, links, a ping, a delay in it, its packets, undo, and export',
  async () => {
    const service = await TestService.start(embedded)
    const lab = await LabPage.open(service.url)
    // The user is asked for once, and beside the scripts: by the link in the page, not by them.
    const asked = () => performance.getEntriesByName(`${location.origin}/v2/session`).map((it) => it.toJSON())
    await lab.page.getByRole('heading', { name: 'Labs', exact: true }).waitFor()
    expect(await lab.page.evaluate(asked)).toMatchObject([{ initiatorType: 'link' }])
    await firstLab(lab)
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
    await keyboardLab(lab, other)
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
    // A browser breaks off what is under way when the network of its machine changes: the page asks again.
    await lab.page.route('**/v2/session', (it) => it.abort('connectionreset'), { times: 1 })
    await lab.page.reload()
    await lab.node('PC1').waitFor()
  },
  120_000,
)
