import { expect } from 'vitest'
import { WebSocket } from 'ws'
import { requireChromium } from '../support/chromium.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage } from '../support/container-lab.ts'
import { LabPage } from '../support/lab-page.ts'
import { MachineScreen, waitingMachine } from '../support/machine-screen.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const qemu = requireProgram('qemu-system-x86_64')

/** A lab with nodes, which run. */
async function labWith(service: TestService, ...all: readonly Record<string, unknown>[]): Promise<void> {
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/projects', { name: 'Consoles' })
  const nodes = `/v2/projects/${project_id}/nodes`
  for (const node of all) await service.call('POST', nodes, { compute_id: 'local', x: 0, y: 0, ...node })
  await service.call('POST', `${nodes}/start`)
}

testWith(browser, qemu)(
  'the screen of a machine is shown, takes keys, a pasted text and Ctrl-Alt-Del, and is there again after a restart',
  async () => {
    const service = await TestService.start()
    await labWith(service, { name: 'M1', ...waitingMachine })
    const lab = await LabPage.open(service.url, '/#/labs/Consoles')
    const { page } = lab
    await lab.node('M1').dblclick()
    const screen = new MachineScreen(page, 'M1')
    await screen.canvas.waitFor()
    const waiting = await screen.settled()
    await page.keyboard.press('Escape')
    await screen.changesFrom(waiting)
    const menu = await screen.settled()
    await page.getByRole('button', { name: 'Paste a text' }).click()
    await page.getByLabel('Text', { exact: true }).fill('1')
    await page.getByRole('button', { name: 'Type it' }).click()
    await screen.changesFrom(menu)
    const booted = await screen.settled()
    await page.getByRole('button', { name: 'Ctrl-Alt-Del' }).click()
    await screen.changesFrom(booted)

    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByText('M1 is not running. Start it to see its screen.').waitFor()
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await screen.canvas.waitFor()
    expect(lab.faults).toEqual([])
  },
  240_000,
)

testWith(browser)(
  'a console has the focus as soon as its tab is clicked, before a key can be a command of the map',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const pc = { node_type: 'pc', properties: {} }
    await labWith(service, { name: 'PC1', ...pc }, { name: 'PC2', x: 200, ...pc })
    const lab = await LabPage.open(service.url, '/#/labs/Consoles')
    for (const name of ['PC1', 'PC2']) {
      await lab.node(name).dblclick()
      await lab.page.locator('.pane:not(.is-behind) .xterm-rows', { hasText: `${name}>` }).waitFor()
      await lab.page.getByRole('textbox', { name: `Console of ${name}` }).waitFor()
    }
    const tab = lab.page.locator('.tab', { hasText: 'PC1' }).getByRole('button').first()
    const focused = await tab.evaluate(async (button: HTMLButtonElement) => {
      button.click()
      // Without a frame between: promises only.
      for (let turn = 0; turn < 50; turn++) await null
      return document.activeElement?.getAttribute('aria-label')
    })
    expect(focused).toBe('Console of PC1')
    expect(lab.faults).toEqual([])
  },
)

testWith(browser, await requireContainers())('further consoles of a container are tabs of their own', async () => {
  const service = await TestService.start()
  await addImage(service)
  const consoles = [
    { name: 'shell', exec: '/bin/sh' },
    { name: 'status', exec: "sh -c 'echo it is well; sleep 1000'" },
  ]
  await labWith(service, { name: 'C1', node_type: 'container', properties: { image: 'busybox.tar', consoles } })
  const lab = await LabPage.open(service.url, '/#/labs/Consoles')
  const { page } = lab
  await lab.node('C1').dblclick()
  await page.getByRole('button', { name: 'status', exact: true }).click()
  await lab.shows('it is well')
  await page.getByRole('button', { name: 'shell', exact: true }).click()
  await page.locator('.tab', { hasText: 'C1/shell' }).waitFor()
  await page.locator('.pane:not(.is-behind) .xterm-rows', { hasText: 'built-in shell' }).waitFor()
  // It has the size of its pane, also when that changes.
  const rows = await page.locator('.pane:not(.is-behind) .xterm-rows > div').count()
  await page.keyboard.type(
    `until stty size | grep "^${rows} "; do sleep 0.1; done; size="$(stty size)"; echo no""ted\n`,
  )
  await lab.shows('noted')
  await page.setViewportSize({ width: 1000, height: 800 })
  await page.keyboard.type('while [ "$(stty size)" = "$size" ]; do sleep 0.1; done; echo nar""rowed\n')
  await lab.shows('narrowed')
  await page.keyboard.type('tty; exit\n')
  // Its tab goes with its command.
  await page.locator('.tab', { hasText: 'C1/shell' }).waitFor({ state: 'detached' })
  await page.locator('.tab', { hasText: 'C1/status' }).waitFor()
  await page.getByRole('button', { name: 'Close the console of C1/status' }).click()
  expect(lab.faults).toEqual([])
})

testWith(browser)(
  'a console in a window of its own has a stable address, copies what is selected, and takes a pasted text',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await labWith(service, { name: 'PC1', node_type: 'pc', properties: {} })
    const lab = await LabPage.open(service.url, '/#/labs/Consoles/nodes/PC1/console')
    const { page } = lab
    await lab.shows('PC1>')
    await page.getByRole('button', { name: 'Paste a text' }).click()
    await page.getByLabel('Text', { exact: true }).fill('set pcname COPIED\n')
    await page.getByRole('button', { name: 'Paste', exact: true }).click()
    await lab.shows('COPIED>')

    const prompt = await page.locator('.xterm-rows').getByText('COPIED>').boundingBox()
    const selection = page.locator('.xterm-selection div')
    await page.mouse.dblclick((prompt?.x ?? 0) + 10, (prompt?.y ?? 0) + 5)
    await selection.first().waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Paste a text' }).click()
    await page.keyboard.press('Control+v')
    await expect.poll(() => page.getByLabel('Text', { exact: true }).inputValue()).toMatch(/^COPIED>?$/)
    await page.keyboard.press('Escape')
    await expect
      .poll(() => page.getByRole('textbox', { name: 'Console of PC1' }).evaluate((it) => it.matches(':focus')))
      .toBe(true)
    await page.keyboard.press('Control+Shift+V')
    await lab.shows(/COPIED> COPIED/)
    await selection.first().waitFor({ state: 'detached' })

    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save what the console shows' }).click()
    expect((await saving).suggestedFilename()).toBe('PC1.log')
    await page.getByRole('button', { name: 'Search the console' }).click()
    await page.getByLabel('Search the console').last().fill('no such words')
    await page.getByText('Not found').waitFor()
    expect(lab.faults).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'on a phone consoles are below each other, and each shows its last line, also one that was behind another',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await labWith(service, ...[0, 200].map((x, at) => ({ name: `PC${at + 1}`, node_type: 'pc', x, properties: {} })))
    const lab = await LabPage.open(service.url, '/#/labs/Consoles')
    const { page } = lab
    await page.setViewportSize({ width: 390, height: 844 })
    const console = (name: string) =>
      page.locator('.pane', { has: page.getByRole('textbox', { name: `Console of ${name}` }) })
    const lastLine = async (name: string) =>
      (await console(name).locator('.xterm-rows').innerText()).trimEnd().split('\n').at(-1)
    await lab.node('PC1').dblclick()
    await expect.poll(() => lastLine('PC1')).toMatch('PC1>')
    await page.keyboard.type('help\nset pcname FIRST\n')
    await expect.poll(() => lastLine('PC1')).toMatch('FIRST>')
    await lab.node('PC2').dblclick()
    await expect.poll(() => lastLine('PC2')).toMatch('PC2>')
    await page.getByRole('button', { name: 'Side by side' }).click()
    await expect.poll(() => lastLine('PC1')).toMatch('FIRST>')
    const [upper, lower] = await Promise.all([console('PC1').boundingBox(), console('PC2').boundingBox()])
    expect([lower?.x, (lower?.y ?? 0) >= (upper?.y ?? 0) + (upper?.height ?? 0)]).toEqual([upper?.x, true])
    expect(lab.faults).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'a console behind another one draws none of its output until it is shown',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await labWith(service, ...[0, 200].map((x, at) => ({ name: `PC${at + 1}`, node_type: 'pc', x, properties: {} })))
    const lab = await LabPage.open(service.url, '/#/labs/Consoles')
    const { page } = lab
    await lab.openConsole('PC1')
    await lab.shows('PC1>')
    await lab.openConsole('PC2')
    await lab.shows('PC2>')
    await page.evaluate(() => {
      const behind = [...document.querySelectorAll('.console.is-behind')][0] as Element
      let drawn = 0
      // The scroll bar is hidden 500 ms after a line that scrolls.
      const { setTimeout: start } = globalThis
      Object.assign(globalThis, {
        setTimeout(work: () => void, ms?: number) {
          if (ms === 500) drawn += 1
          return start(work, ms)
        },
      })
      const rows = behind.querySelector('.xterm-rows') as Element
      new MutationObserver((changes) => {
        drawn += changes.length
      }).observe(rows, { childList: true, subtree: true })
      // The scroll bar follows the lines, in sight or not.
      const scrolled = new Promise<void>((resolve) => {
        const bar = behind.querySelector('.scrollbar.vertical') as Element
        new MutationObserver(() => resolve()).observe(bar, { attributes: true, subtree: true })
      })
      const nextFrame = () => new Promise(requestAnimationFrame)
      Object.assign(globalThis, {
        drawnBehind: () =>
          scrolled
            .then(nextFrame)
            .then(nextFrame)
            .then(() => drawn),
      })
    })
    const client = new WebSocket(`${service.url.replace('http', 'ws')}/v2/projects/Consoles/nodes/PC1/console/ws`)
    client.on('open', () => client.send('help\rset pcname LAST\r'))
    expect(await page.evaluate('drawnBehind()')).toBe(0)
    client.close()
    await page.locator('.tab button', { hasText: 'PC1' }).first().click()
    await lab.shows('LAST>')
    expect(lab.faults).toEqual([])
  },
  120_000,
)
