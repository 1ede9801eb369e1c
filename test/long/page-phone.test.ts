import { expect } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { keyboardLab } from '../support/keyboard-lab.ts'
import { LabPage } from '../support/lab-page.ts'
import { phone, phoneLab } from '../support/phone-lab.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'a lab is made by fingers on a phone: nodes, a link, a ping, and its frames with their fields',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url, '/', phone)
    await phoneLab(lab)
    expect(lab.faults).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'a lab is made by the keyboard alone in a window as narrow as a phone',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await service.call('POST', '/v2/projects', { name: 'Keys' })
    const other = await LabPage.open(service.url, '/#/labs/Keys')
    const lab = await LabPage.open(service.url, '/#/labs/Keys', { viewport: phone.viewport })
    await keyboardLab(lab, other)
    expect([...lab.faults, ...other.faults]).toEqual([])
  },
  120_000,
)
