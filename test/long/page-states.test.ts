import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'a node that is not ready yet is booting, its job is at the foot of the map, and links show frames that pass',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await service.call('POST', '/v2/projects', { name: 'States' })
    for (const [name, x] of [
      ['PC1', -200],
      ['PC2', 100],
    ] as const)
      await service.call('POST', '/v2/projects/States/nodes', { name, node_type: 'pc', x, y: 0 })
    await service.call('PUT', '/v2/projects/States/nodes/PC2', { ready: { console: 'I am up', within_s: 300 } })
    const lab = await LabPage.open(service.url, '/#/labs/States')
    const calm = await LabPage.open(service.url, '/#/labs/States', { reducedMotion: 'reduce' })
    const { page } = lab
    await lab.node('PC1').waitFor()
    await lab.draw('PC1', 'PC2')
    await page.getByRole('button', { name: 'Start all nodes' }).click()
    await lab.node('PC1', ', pc, running').waitFor()
    await lab.node('PC2', ', pc, booting').waitFor()
    const line = page.locator('.job-line')
    await line.getByText('Starting: 1 of 2 nodes').waitFor()
    await line.getByText(/^PC2: /).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    const ring = (shown: LabPage) =>
      shown
        .node('PC2')
        .locator('.status')
        .evaluate((it) => getComputedStyle(it).animationName)
    expect([await ring(lab), await ring(calm)]).toEqual(['run', 'none'])
    // Its console has what makes it ready.
    const console = await lab.openConsole('PC2')
    await lab.shows('PC2>')
    await console.pressSequentially('I am up\r')
    await lab.node('PC2', ', pc, running').waitFor()
    await line.waitFor({ state: 'detached' })
    await console.pressSequentially('ip 10.0.0.2/24\r')
    await lab.shows('10.0.0.2')

    const flows = (shown: LabPage) =>
      shown
        .link('PC1', 'PC2')
        .locator('.flow')
        .evaluateAll((all) => all.map((it) => getComputedStyle(it).display))
    expect(await flows(lab)).toEqual([])
    const other = await lab.openConsole('PC1')
    await lab.shows('PC1>')
    await other.pressSequentially('ip 10.0.0.1/24\r')
    await lab.shows('10.0.0.1')
    await other.pressSequentially('ping 10.0.0.2 -c 20\r')
    await expect.poll(() => flows(lab), { timeout: hangMs }).toEqual(['inline', 'inline'])
    expect((await flows(calm)).every((it) => it === 'none')).toBe(true)
    expect([...lab.faults, ...calm.faults]).toEqual([])
  },
  240_000,
)
