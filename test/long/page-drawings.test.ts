import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'rectangles and texts are drawn, moved, changed and deleted; another window follows, and undo takes them back',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { project_id } = (await service.call('POST', '/v2/projects', { name: 'Drawn' })) as { project_id: string }
    const drawings = `/v2/projects/${project_id}/drawings`
    // As a client of release 2.2 draws, and one whose picture has a script.
    const foreign =
      '<svg height="60" width="240"><rect fill="#ffffff" fill-opacity="1.0" height="60" stroke="#000000" stroke-width="2" width="240" /></svg>'
    await service.call('POST', drawings, { svg: foreign, x: -300, y: -200 })
    const hostile =
      '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40"><script>alert(1)</script><circle r="20"/></svg>'
    await service.call('POST', drawings, { svg: hostile, x: 0, y: -200 })
    const lab = await LabPage.open(service.url, '/#/labs/Drawn')
    const other = await LabPage.open(service.url, '/#/labs/Drawn')
    const { page } = lab
    const shape = (it: LabPage, name: string | RegExp) =>
      it.page.getByRole('button', { name, exact: typeof name === 'string' }).and(it.page.locator('.drawing'))
    await shape(other, 'Picture').waitFor()
    const map = page.getByRole('application')

    await page
      .getByRole('button', { name: 'Rectangle' })
      .and(page.locator('.template'))
      .dragTo(map, { targetPosition: { x: 300, y: 420 } })
    const rectangle = shape(lab, 'Rectangle').last()
    await page.locator('.corner').first().waitFor()
    await expect.poll(() => shape(other, 'Rectangle').count()).toBe(2)

    // A corner is pulled: the other window has the new size.
    const corner = await page.locator('.corner.is-se').boundingBox()
    if (corner === null) throw new Error('There is no corner')
    await page.mouse.move(corner.x + 5, corner.y + 5)
    await page.mouse.down()
    await page.mouse.move(corner.x + 105, corner.y + 65, { steps: 4 })
    await page.mouse.up()
    await expect
      .poll(async () => Number(await shape(other, 'Rectangle').last().locator('rect').first().getAttribute('width')))
      .toBeGreaterThan(280)

    // Its area belongs to the map: a click selects it, and a node on it is selected alone.
    await page.getByRole('radio', { name: 'green' }).check({ force: true })
    await shape(other, 'Rectangle').last().locator('rect[stroke="#2c8a52"]').first().waitFor({ state: 'attached' })
    await page.keyboard.press('Escape')
    await page.locator('header').click()
    await page.keyboard.press('Escape')
    const before = await rectangle.getAttribute('transform')
    await rectangle.focus()
    await page.keyboard.press('ArrowRight')
    await expect.poll(() => shape(other, 'Rectangle').last().getAttribute('transform')).not.toBe(before)

    // A text by the keyboard alone.
    await page.keyboard.press('Shift+T')
    const words = page.getByLabel('Text', { exact: true })
    await expect.poll(() => words.evaluate((it) => it === document.activeElement)).toBe(true)
    await page.keyboard.type('<b>Core & edge</b>\nsecond line')
    await page.keyboard.press('Tab')
    await shape(other, /^Text “<b>Core & edge<\/b>/).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.locator('header').click()
    await page.keyboard.press('Delete')
    await shape(other, /^Text/).waitFor({ state: 'detached' })
    await page.keyboard.press('Control+z')
    await shape(other, /^Text “<b>Core & edge/).waitFor()

    // A text is moved by the mouse.
    const text = shape(lab, /^Text/)
    const place = await text.getAttribute('transform')
    const box = await text.boundingBox()
    if (box === null) throw new Error('The text is not on the map')
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
    await page.mouse.down()
    await page.mouse.move(box.x + 200, box.y + 150, { steps: 4 })
    await page.mouse.up()
    await expect.poll(() => shape(other, /^Text/).getAttribute('transform')).not.toBe(place)

    // It comes behind the rectangles, and by undo before them again.
    const hindmost = () => other.page.locator('.drawing').first().getAttribute('aria-label')
    await text.focus()
    await page.getByRole('button', { name: 'To back' }).click()
    await expect.poll(hindmost).toMatch(/^Text/)
    await page.keyboard.press('Control+z')
    await expect.poll(hindmost).not.toMatch(/^Text/)

    await page.keyboard.press('t')
    await page.getByRole('table', { name: 'Drawings' }).getByRole('button', { name: 'Picture' }).click()
    await page.getByText('Drawn by another program').waitFor()
    expect([...lab.faults, ...other.faults]).toEqual([])
  },
  120_000,
)
