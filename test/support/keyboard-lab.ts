import type { Locator } from 'playwright-core'
import { expect } from 'vitest'
import type { LabPage } from './lab-page.ts'

/** A lab is made in an empty one by the keyboard alone; the other window at it follows. */
export async function keyboardLab(lab: LabPage, other: LabPage): Promise<void> {
  const { keyboard } = lab.page
  /** Goes there by Tab. */
  const reach = async (name: string, key = 'Tab') => {
    const isThere = () => lab.node(name).evaluate((it) => it === document.activeElement)
    for (let left = 80; left > 0 && !(await isThere()); left--) await keyboard.press(key)
    expect(await isThere()).toBe(true)
  }
  await lab.page.getByText('An empty lab').waitFor()
  for (const name of ['PC1', 'PC2']) {
    await keyboard.press('Control+k')
    await lab.page.getByPlaceholder('Node, command or node type').pressSequentially('add pc')
    // The node types come a moment after the map.
    await lab.page.getByRole('option', { name: 'Add PC' }).waitFor()
    await keyboard.press('Enter')
    await lab.node(name).waitFor()
  }
  await reach('PC1')
  await keyboard.press('c')
  await reach('PC2')
  await keyboard.press('Enter')
  await other.link('PC1', 'PC2').waitFor({ state: 'attached' })

  // To the settings of the link, past all other nodes, and back.
  const line = lab.link('PC1', 'PC2')
  const has = (it: Locator) => it.evaluate((element) => element === document.activeElement)
  while (!(await has(line))) await keyboard.press('Shift+Tab')
  await lab.page.getByText('Impairment').waitFor()
  await keyboard.press('F6')
  const delay = lab.page.getByRole('slider', { name: 'Delay, slider' })
  for (let left = 20; left > 0 && !(await has(delay)); left--) await keyboard.press('Tab')
  await keyboard.press('ArrowRight')
  await other.page.locator('.badge', { hasText: 'ms' }).waitFor()
  await keyboard.press('F6')
  expect(await has(line)).toBe(true)

  await reach('PC1')
  const before = await other.node('PC1').getAttribute('transform')
  await keyboard.press('ArrowLeft')
  await keyboard.press('ArrowLeft')
  await expect.poll(() => other.node('PC1').getAttribute('transform')).not.toBe(before)
  await keyboard.press('s')
  await other.node('PC1', ', pc, running').waitFor()
  await keyboard.press('Enter')
  await lab.shows('PC1>')
  await lab.page.keyboard.type('show ip\r')
  await lab.shows('GATEWAY')
  // The field of xterm is below its last line: the page does not scroll to it.
  expect(await lab.page.evaluate('document.documentElement.scrollHeight <= innerHeight')).toBe(true)

  await keyboard.press('Control+Shift+ArrowUp')
  await reach('PC2', 'Shift+Tab')
  await keyboard.press('Delete')
  await other.node('PC2').waitFor({ state: 'detached' })
  await keyboard.press('Control+z')
  await other.node('PC2').waitFor()
  await other.link('PC1', 'PC2').waitFor({ state: 'attached' })
  // The list, while a console is open: it stays the same one.
  const screen = await lab.page.locator('.console-screen').elementHandle()
  await keyboard.press('t')
  await lab.page.getByRole('table', { name: 'Nodes' }).getByText('PC2').waitFor()
  await lab.shows('GATEWAY')
  expect(await screen?.evaluate((it) => it.isConnected)).toBe(true)
  // A node that is found has the focus in the list, too, and a link can be drawn there.
  await keyboard.press('Control+k')
  await lab.page.getByPlaceholder('Node, command or node type').pressSequentially('pc2')
  await keyboard.press('Enter')
  await expect.poll(() => lab.page.evaluate('document.activeElement.textContent')).toBe('PC2')
}
