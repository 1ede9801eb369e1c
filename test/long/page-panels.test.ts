import { expect, onTestFinished } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

const closets = `lab: closets
nodes:
  FLOOR1: { kind: pc, at: [-300, 0], config: { text: ip 10.0.0.1/24 } }
  FLOOR2: { kind: pc, at: [300, 0], config: { text: ip 10.0.0.2/24 } }
  PRINTER: { kind: pc, at: [300, 120], config: { text: ip 10.0.0.3/24 } }
segments:
  closet1: { kind: switch, at: [-100, 0], members: [FLOOR1] }
  closet2: { kind: switch, at: [100, 0], members: [FLOOR2, PRINTER] }
links:
  - [closet1:7, closet2:7]
`

/** The page at a lab of two switches. */
async function openClosets(): Promise<LabPage> {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const headers = { 'content-type': 'application/yaml' }
  const answer = await service.fetch('/v2/projects/closets/topology', { method: 'PUT', headers, body: closets })
  expect(answer.ok).toBe(true)
  const lab = await LabPage.open(service.url, '/#/labs/closets')
  onTestFinished(() => expect(lab.faults).toEqual([]))
  return lab
}

testWith(browser)('the counters of a port have room of their own, and no port is cut off', async () => {
  const lab = await openClosets()
  const { page } = lab
  for (const width of [1440, 800, 390]) {
    await page.setViewportSize({ width, height: 900 })
    await lab.node('closet2').focus()
    const counters = page.locator('.ports small > span')
    await expect.poll(() => counters.count()).toBeGreaterThan(5)
    // As after an hour.
    await counters.evaluateAll((all) => {
      for (const it of all) it.textContent = 'out 123,456 frames, 1.23 GB'
    })
    const faults = await page.locator('.ports').evaluate((list) => {
      const rows = [...list.querySelectorAll('li')]
      const covered = rows.filter((row) => row.scrollHeight > row.clientHeight + 1)
      return [rows.length, covered.map((it) => it.innerText), list.scrollHeight > list.clientHeight + 1]
    })
    expect(faults).toEqual([8, [], false])
  }
  expect(await page.getByRole('group', { name: 'VLANs' }).count()).toBe(1)
})

testWith(browser)('both directions of a link show whole names, also in a narrow panel', async () => {
  const lab = await openClosets()
  const { page } = lab
  for (const width of [1440, 800, 390]) {
    await page.setViewportSize({ width, height: 900 })
    await lab.link('closet1', 'closet2').focus()
    const ways = page.locator('.traffic .way')
    await expect.poll(() => ways.count()).toBe(2)
    const shown = await ways.evaluateAll((all) =>
      all.map((it) => [it.textContent?.replace(/\s+/g, ' '), it.scrollWidth <= it.clientWidth]),
    )
    expect(shown).toEqual([
      ['closet1 → closet2', true],
      ['closet2 → closet1', true],
    ])
  }
})

testWith(browser)(
  'the panel of a lab counts switches as such, and no cable runs through the name of a port',
  async () => {
    const lab = await openClosets()
    const { page } = lab
    const facts = page.getByRole('complementary', { name: 'Lab' }).locator('.facts').first()
    await expect.poll(() => facts.innerText()).toMatch(/Nodes\s+3, 0 running\s+Switches\s+2\s+Links\s+4/)
    // What covers the line around each letter is wider than a space.
    const widths = await page.locator('.port').evaluateAll((all) => all.map((it) => getComputedStyle(it).strokeWidth))
    expect(new Set(widths)).toEqual(new Set(['10px']))
  },
)
