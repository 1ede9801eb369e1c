import { expect } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const password = 'geheim-geheim'
const authorization = `Basic ${btoa(`admin:${password}`)}`

testWith(browser)(
  'two people at one lab see who has selected what, and what the other edits, also at the same time',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', user: 'admin', password })
    const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
      const init = { method, headers: { authorization }, ...(body !== undefined && { body: JSON.stringify(body) }) }
      return (await (await service.fetch(path, init)).json()) as T
    }
    await call('POST', '/v2/projects', { name: 'Shared' })
    const [anna, berta] = [await LabPage.open(service.url), await LabPage.open(service.url)]
    for (const [name, lab] of [['anna', anna] as const, ['berta', berta] as const]) {
      const { token } = await call<{ token: string }>('POST', '/v2/tokens', { name, role: 'operate' })
      await lab.signIn(token)
      await lab.page.getByRole('link', { name: 'Shared' }).click()
      await lab.page.getByText('An empty lab').waitFor()
    }
    const undo = (lab: LabPage) => lab.page.getByRole('button', { name: 'Undo', exact: true })
    await expect.poll(() => undo(anna).isDisabled(), { timeout: hangMs }).toBe(true)
    await anna.place('PC', { x: 200, y: 200 }, 'PC1')
    await berta.place('PC', { x: 400, y: 200 }, 'PC2')
    await anna.node('PC2').waitFor()
    // A new node is selected.
    await anna.node('PC2').getByText('berta').waitFor()
    await berta.node('PC1').getByText('anna').waitFor()
    await anna.node('PC2').click()
    await berta.node('PC2').getByText('anna').waitFor()
    await berta.node('PC1').getByText('anna').waitFor({ state: 'detached' })

    await anna.draw('PC1', 'PC2')
    await berta.link('PC1', 'PC2').waitFor({ state: 'attached' })
    // A link and a drawing tell of that, too.
    await anna.link('PC1', 'PC2').focus()
    await berta.link('PC1', 'PC2').getByText('anna').waitFor()
    await anna.page.keyboard.press('Shift+R')
    await berta.page.locator('.drawing').getByText('anna').waitFor()
    await berta.link('PC1', 'PC2').getByText('anna').waitFor({ state: 'detached' })
    await anna.page.keyboard.press('Delete')
    await berta.page.locator('.drawing').waitFor({ state: 'detached' })

    await berta.page.keyboard.press('Escape')
    await anna.node('PC2').getByText('berta').waitFor({ state: 'detached' })

    const nodes = () => call<{ x: number; y: number }[]>('GET', '/v2/projects/Shared/nodes')
    const before = await nodes()
    // Both move nodes at once: each map has both at the end.
    await anna.node('PC1').focus()
    await berta.node('PC2').focus()
    for (let press = 0; press < 5; press++)
      await Promise.all([anna.page.keyboard.press('ArrowDown'), berta.page.keyboard.press('ArrowUp')])
    const moved = before.map(({ x, y }, index) => ({ x, y: y + (index === 0 ? 100 : -100) }))
    await expect.poll(nodes, { timeout: hangMs }).toMatchObject(moved)
    for (const lab of [anna, berta])
      for (const [index, { x, y }] of moved.entries())
        await expect
          .poll(() => lab.node(`PC${index + 1}`).getAttribute('transform'), { timeout: hangMs })
          .toBe(`translate(${x} ${y})`)
    // Each undoes their own edits; what somebody else has edited since is refused, with the name.
    await expect.poll(() => undo(anna).getAttribute('title'), { timeout: hangMs }).toContain('Undo: move PC1 (anna)')
    await expect.poll(() => undo(berta).getAttribute('title'), { timeout: hangMs }).toContain('Undo: move PC2 (berta)')
    await berta.node('PC1').focus()
    await berta.page.keyboard.press('Delete')
    await anna.node('PC1').waitFor({ state: 'detached' })
    await undo(anna).click()
    await anna.page.getByText(/berta has edited the same since \(delete PC1/).waitFor()
    anna.faults.length = 0
    expect([...anna.faults, ...berta.faults]).toEqual([])
  },
  240_000,
)
