import { expect } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const [user, password] = ['anna', 'geheim-geheim']
const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** Words of what changes something. `Stop` and the like are whole words: `stopped` is a state. */
const changes =
  /\b(start|stop|reload|suspend|resume|delete|rename|duplicate|new|import|export|undo|redo|connect|console|save|take|restore|add|register|join|change|remove|drain|revoke|packets|arrange|draw|paste|close lab)\b/i

async function call<T>(service: TestService, method: string, path: string, body?: unknown): Promise<T> {
  const init = { method, headers: { authorization }, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const answer = await service.fetch(path, init)
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}

testWith(browser)(
  'who may only read is offered nothing else, on every screen, and the page asks for nothing that is refused',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', user, password })
    const { project_id } = await call<{ project_id: string }>(service, 'POST', '/v2/projects', { name: 'Seen' })
    const lab = `/v2/projects/${project_id}`
    const ids: string[] = []
    for (const name of ['PC1', 'PC2']) {
      const node = { name, node_type: 'pc', compute_id: 'local', x: ids.length * 200, y: 0, properties: {} }
      ids.push((await call<{ node_id: string }>(service, 'POST', `${lab}/nodes`, node)).node_id)
    }
    const nodes = ids.map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 }))
    await call(service, 'POST', `${lab}/links`, { nodes })
    await call(service, 'POST', `${lab}/snapshots`, { name: 'Before' })
    await call(service, 'POST', `${lab}/nodes/start`)
    const image = { method: 'POST', headers: { authorization }, body: 'disk' }
    await service.fetch('/v2/compute/machine-emulator/images/seen.img', image)
    const { token } = await call<{ token: string }>(service, 'POST', '/v2/tokens', { name: 'reader', role: 'read' })

    const shown = await LabPage.open(service.url)
    const { page } = shown
    await page.getByLabel('Token', { exact: true }).last().fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('2 nodes, 1 link').waitFor()
    shown.faults.length = 0
    page.on('response', (it) => {
      if (it.status() === 401 || it.status() === 403)
        shown.faults.push(`${it.status()} ${it.request().method()} ${it.url()}`)
    })
    const offered: string[] = []
    const look = async (screen: string) => {
      const all = page.locator(
        'button:not(:disabled), a, input:not(:disabled), summary, select, textarea:not([readonly])',
      )
      const names = await all.evaluateAll((elements) =>
        elements
          .filter((it) => it.checkVisibility({ visibilityProperty: true }) && it.getClientRects().length > 0)
          .map((it) => `${it.getAttribute('aria-label') ?? ''} ${(it as HTMLElement).innerText}`.trim()),
      )
      expect(names).not.toEqual([])
      offered.push(...names.filter((it) => changes.test(it)).map((it) => `${screen}: ${it}`))
    }
    await look('labs')
    await page.getByRole('link', { name: 'Seen' }).click()
    await shown.node('PC1', ', pc, running').waitFor()
    await look('lab')
    await shown.node('PC1').focus()
    await page.getByRole('complementary', { name: 'Node PC1' }).waitFor()
    for (const part of ['Configuration', 'Files', 'Events', 'Details'])
      await page.getByText(part, { exact: true }).click()
    await page.getByLabel('Configuration of PC1').waitFor()
    await look('node')
    await shown.link('PC1', 'PC2').focus()
    await page.getByText('Impairment').waitFor()
    await look('link')
    await page.keyboard.press('Control+a')
    await page.getByRole('complementary', { name: 'Selection' }).waitFor()
    await look('selection')
    await shown.node('PC1').dblclick()
    await page.keyboard.press('Delete')
    await page.keyboard.press('Control+z')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').waitFor()
    offered.push(...(await page.getByRole('option').allInnerTexts()).filter((it) => changes.test(it)))
    await page.keyboard.press('Escape')
    await page.keyboard.press('t')
    await page.getByRole('table', { name: 'Nodes' }).waitFor()
    await look('list')
    await page.goto(`${service.url}/#/labs/Seen/nodes/PC1/console`)
    await page.getByText('Consoles need the role operate.').waitFor()
    for (const [screen, text] of [
      ['images', 'seen.img'],
      ['computes', 'Memory'],
      ['tokens', 'Tokens need the role admin.'],
      ['doctor', 'This service'],
    ] as const) {
      await page.goto(`${service.url}/#/${screen}`)
      await page.getByText(text).first().waitFor()
      await look(screen)
    }
    await page.locator('.check').first().waitFor()
    expect(await page.getByRole('link', { name: 'Tokens' }).count()).toBe(0)
    expect([...offered, ...shown.faults]).toEqual([])
    expect(await call<unknown[]>(service, 'GET', `${lab}/nodes`)).toHaveLength(2)
  },
  120_000,
)
