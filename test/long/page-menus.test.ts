import { expect } from 'vitest'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(browser)(
  'nodes, links and the map have menus by the right button and by keys, and nodes are copied with their links',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    const { keyboard, mouse } = page
    const nodes = () => service.call<LabNode[]>('GET', '/v2/projects/Menus/nodes')
    const links = () => service.call<LabLink[]>('GET', '/v2/projects/Menus/links')
    const menu = page.getByRole('menu')
    const choose = (name: string) => menu.getByRole('menuitem', { name }).click()
    await lab.newLab('Menus')
    await lab.place('PC', { x: 200, y: 220 }, 'PC1')
    await lab.place('PC', { x: 400, y: 220 }, 'PC2')
    await lab.draw('PC1', 'PC2')

    // A right click selects, and the keys of each command are shown.
    await lab.node('PC1').click({ button: 'right' })
    await expect
      .poll(() => menu.getByRole('menuitem').locator('span').allInnerTexts())
      .toEqual(['Start', 'Console', 'Connect', 'Duplicate', 'Copy', 'Symbol …', 'Rename', 'Settings', 'Delete'])
    expect(await menu.getByRole('menuitem', { name: 'Duplicate' }).innerText()).toContain('Ctrl+D')
    expect(await accessibilityFaults(page)).toEqual([])
    await choose('Rename')
    await expect.poll(() => page.evaluate('document.activeElement.value')).toBe('PC1')
    await keyboard.press('Escape')

    // Keys open it, go through it, and close it; the focus is at the node again.
    await lab.node('PC2').focus()
    await keyboard.press('Shift+F10')
    await menu.waitFor()
    await keyboard.press('ArrowDown')
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toContain('Console')
    await keyboard.press('Escape')
    await menu.waitFor({ state: 'detached' })
    expect(await lab.node('PC2').evaluate((it) => it === document.activeElement)).toBe(true)
    await keyboard.press('ContextMenu')
    await menu.waitFor()
    await keyboard.press('s')
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toContain('Symbol')
    await keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Symbol of PC2' }).getByRole('button', { name: 'server' }).click()
    await expect.poll(async () => (await nodes()).map(({ symbol }) => symbol)).toContain('server')

    // Both nodes, with the link between them.
    await keyboard.press('Escape')
    await keyboard.press('Control+a')
    await keyboard.press('Control+c')
    await keyboard.press('Control+v')
    await expect.poll(async () => (await links()).length, { timeout: hangMs }).toBe(2)
    await lab.link('PC3', 'PC4').waitFor({ state: 'attached' })
    const [one, two, three, four] = await nodes()
    expect([three?.symbol, four?.symbol].toSorted()).toEqual([one?.symbol, two?.symbol].toSorted())
    await keyboard.press('Control+z')
    await expect.poll(async () => (await nodes()).length, { timeout: hangMs }).toBe(2)
    expect(await links()).toHaveLength(1)

    // The map: what was copied goes where the pointer was.
    await page.getByRole('application').click({ button: 'right', position: { x: 300, y: 500 } })
    await choose('Paste')
    await expect.poll(async () => (await nodes()).length, { timeout: hangMs }).toBe(4)
    await lab.link('PC3', 'PC4').waitFor({ state: 'attached' })
    const pasted = (await nodes()).slice(2)
    expect(pasted.every((it) => pasted[0]?.y === it.y && it.y > (one?.y ?? 0) + 200)).toBe(true)

    await lab.link('PC1', 'PC2').focus()
    await keyboard.press('Shift+F10')
    await choose('Packets')
    await page.locator('.packets').waitFor()

    // The middle button, and the space bar with a drag, move the map; no node moves, and no menu opens.
    const box = await lab.node('PC1').locator('.tile').boundingBox()
    const at = { x: (box?.x ?? 0) + 20, y: (box?.y ?? 0) + 20 }
    const drag = async (button: 'left' | 'middle' | 'right') => {
      await mouse.move(at.x, at.y)
      await mouse.down({ button })
      await mouse.move(at.x + 40, at.y, { steps: 3 })
      await mouse.up({ button })
      const moved = await lab.node('PC1').locator('.tile').boundingBox()
      await mouse.move(at.x + 40, at.y)
      at.x += 40
      return (moved?.x ?? 0) - (box?.x ?? 0)
    }
    // The outline of the tile depends on its focus.
    expect(await drag('middle')).toBeCloseTo(40, -1)
    expect(await drag('right')).toBeCloseTo(80, -1)
    await keyboard.down(' ')
    expect(await drag('left')).toBeCloseTo(120, -1)
    await keyboard.up(' ')
    expect(await menu.count()).toBe(0)
    expect((await nodes())[0]).toMatchObject({ x: one?.x, y: one?.y })
    expect(lab.faults).toEqual([])
  },
  240_000,
)
