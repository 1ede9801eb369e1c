import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { freshDirectory } from '../support/directory.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

const markup = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
/** Of a lab: its name must not have a slash. */
const title = markup.replaceAll('/', '')
const hostile = [markup, 'שלום evil', '🦊👨‍👩‍👧'.repeat(12), 'x'.repeat(255)]
const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40"><script>alert(3)</script><rect width="80" height="40" fill="none" stroke="#888"/></svg>`

/** A lab whose names, notes and console are what an attacker would choose; its path. */
async function hostileLab(service: TestService, name: string): Promise<string> {
  const { project_id } = (await service.call('POST', '/v2/projects', { name })) as { project_id: string }
  const lab = `/v2/projects/${project_id}`
  const startup_script = 'echo \x1b]0;title\x07\x1b[31m<b>red</b>\x1b[0m'
  const ids: string[] = []
  for (const [index, name] of ['PC1', ...hostile].entries()) {
    const properties = index === 0 ? { startup_script } : {}
    const place = { compute_id: 'local', x: index * 180, y: 160 }
    const body = { name, node_type: 'pc', ...place, properties }
    ids.push(((await service.call('POST', `${lab}/nodes`, body)) as { node_id: string }).node_id)
  }
  const hub = (await service.call('POST', `${lab}/nodes`, {
    ...{ name: 'Switch1', node_type: 'switch', compute_id: 'local', x: 360, y: 0, properties: {} },
  })) as { node_id: string }
  for (const [port_number, node_id] of ids.entries()) {
    const nodes = [
      { node_id, adapter_number: 0, port_number: 0 },
      { node_id: hub.node_id, adapter_number: 0, port_number },
    ]
    await service.call('POST', `${lab}/links`, { nodes })
  }
  await service.call('POST', `${lab}/drawings`, { svg: drawing, x: 0, y: -40 })
  await service.call('POST', `${lab}/nodes/start`)
  await service.call('POST', `${lab}/snapshots`, { name: markup })
  return lab
}

/** Waits until the console that is shown has the colours of a theme: its ground has them first, its text with the next picture. */
async function consoleDrawn(page: Page, theme: 'light' | 'dark'): Promise<void> {
  const ground = theme === 'light' ? 'rgb(251, 252, 253)' : 'rgb(15, 19, 22)'
  const element = page.locator('.console:not(.is-behind) .xterm-scrollable-element')
  if ((await element.count()) === 0) return
  await expect.poll(() => element.evaluate((it) => it.style.backgroundColor), { timeout: hangMs }).toBe(ground)
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
}

testWith(browser)(
  'each screen is without faults of accessibility in both themes, and hostile names do nothing',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const at = await hostileLab(service, title)
    const lab = await LabPage.open(service.url)
    const { page } = lab
    const found: string[] = []
    page.on('dialog', (dialog) => {
      found.push(`dialog ${dialog.message()}`)
      void dialog.dismiss()
    })
    const check = async (screen: string) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await consoleDrawn(page, colorScheme)
        const faults = await accessibilityFaults(page, { isRecoloured: colorScheme === 'dark' })
        found.push(...faults.map((fault) => `${screen}, ${colorScheme}: ${fault}`))
      }
    }
    await page.getByText('5 nodes, 1 segment, 5 links').waitFor()
    await check('labs')
    await page.getByRole('link', { name: title }).click()
    await lab.node('PC1', ', pc, running').waitFor()
    await check('map')
    await page.getByRole('button', { name: `${markup}, pc, running` }).focus()
    await page.getByRole('complementary', { name: `Node ${markup}` }).waitFor()
    await check('node')
    for (const part of ['Configuration', 'Files', 'Log']) await page.getByText(part, { exact: true }).click()
    const config = page.getByLabel(`Configuration of ${markup}`)
    await config.fill(`${markup}\n`)
    await page.getByText('1 line added, 0 removed').waitFor()
    await page.getByRole('region', { name: `Log of ${markup}` }).waitFor()
    await check('configuration, files and log')
    await page.getByRole('button', { name: 'Discard' }).click()
    for (const part of ['Configuration', 'Files', 'Log']) await page.getByText(part, { exact: true }).click()
    await page.getByRole('button', { name: /^Switch1, / }).focus()
    await check('switch')
    // Its ports are a table, with a row for all that are equal; the map shows what is not the usual VLAN.
    const ports = page.getByLabel('Ports of row 1', { exact: true })
    expect(await ports.inputValue()).toBe('e0-e7')
    await ports.fill('e0-')
    await page.getByLabel('VLAN of row 1', { exact: true }).fill('10')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('alert').getByText('expected ports such as e0-e3 or e7, not "e0-"').waitFor()
    // A new row takes its ports from the others, or adds one.
    await ports.fill('e0-e7')
    await page.getByRole('button', { name: 'Add a row of ports' }).click()
    await page.keyboard.type('e7')
    await page.keyboard.press('Tab')
    await page.getByLabel('Mode of row 2', { exact: true }).selectOption('dot1q')
    expect(await ports.inputValue()).toBe('e0-e6')
    await page.getByRole('button', { name: 'Add a row of ports' }).click()
    await page.keyboard.type('e8')
    // What has the focus is above the foot of the form, which covers a part of what happens to be beneath it.
    await page.locator('#field-ageing_time').focus()
    await check('ports of a switch')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Ethernet8', { exact: true }).waitFor()
    const nodes = await service.call<{ properties: { ports_mapping?: object[] } }[]>('GET', `${at}/nodes`)
    expect(nodes.find((it) => it.properties.ports_mapping !== undefined)?.properties.ports_mapping).toMatchObject([
      ...Array.from({ length: 7 }, (_, port_number) => ({ port_number, type: 'access', vlan: 10 })),
      ...[
        { port_number: 7, type: 'dot1q' },
        { port_number: 8, name: 'Ethernet8', type: 'access', vlan: 1 },
      ],
    ])
    await page
      .locator('.port', { hasText: /^e\d · v10$/ })
      .first()
      .waitFor()
    await page.keyboard.press('Escape')
    await lab.link('PC1', 'Switch1').focus()
    await page.keyboard.press('Shift+V')
    await page.getByRole('list', { name: 'Colours of VLANs' }).getByText('VLAN 10').waitFor()
    expect(await lab.link('PC1', 'Switch1').getAttribute('class')).toContain('is-vlan')
    await check('colours of VLANs')
    await page.keyboard.press('Shift+V')
    await page.getByText('Impairment').waitFor()
    await check('link')
    await lab.openConsole('PC1')
    await lab.shows('<b>red</b>')
    await check('console')
    await page.getByRole('button', { name: 'Show the lab as a list, or as a map' }).click()
    await page.getByRole('table', { name: 'Nodes' }).getByText('שלום').waitFor()
    await check('list')
    await page.locator('header').click()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await check('keys')
    // A wide dialog fits a phone.
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'PC', exact: true }).waitFor()
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.keyboard.press('Control+k')
    await page.getByRole('option', { name: markup }).waitFor()
    await check('command bar')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Shift+C')
    await page.getByRole('dialog', { name: 'Link nodes by their names' }).waitFor()
    await page.getByLabel('From').fill('PC1')
    await page.getByLabel('To', { exact: true }).fill('x*')
    await page.getByText('No free ports for 1 pair: ').waitFor()
    expect(await page.getByRole('button', { name: 'Make 0 links' }).isDisabled()).toBe(true)
    await check('bulk links')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.getByRole('complementary', { name: 'Lab' }).getByText(markup).last().waitFor()
    await check('snapshots')
    expect(await page.title()).toBe(`${title} – Patchbay`)
    expect([...found, ...lab.faults]).toEqual([])
  },
  // Every screen is looked through by axe in both themes: longer where others need the processor, too.
  6 * hangMs,
)

testWith(browser)(
  'images come in parts, tokens are made once and revoked, and the screens about the service are accessible',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', user: 'anna', password: 'geheim-geheim' })
    const authorization = `Basic ${btoa('anna:geheim-geheim')}`
    const disk = join(await freshDirectory(), 'disk with spaces.img')
    await writeFile(disk, Buffer.alloc(9 << 20, 7))
    const lab = await LabPage.open(service.url, '/#/images')
    const { page } = lab
    await page.getByText('User and password').click()
    await page.getByLabel('User', { exact: true }).fill('anna')
    await page.getByLabel('Password', { exact: true }).fill('geheim')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Wrong user or password.').waitFor()
    await page.getByLabel('Password', { exact: true }).fill('geheim-geheim')
    await page.getByRole('button', { name: 'Sign in' }).click()
    const found: string[] = []
    const check = async (screen: string) => {
      for (const fault of await accessibilityFaults(page)) found.push(`${screen}: ${fault}`)
    }
    const parts: string[] = []
    page.on('request', (it) => parts.push(it.headers()['content-range'] ?? ''))
    await page.getByText('Add images').last().waitFor()
    // The second part comes nowhere until the upload is paused.
    const images = '**/images/disk*'
    await page.route(images, (it) =>
      it.request().headers()['content-range']?.startsWith('bytes 4194304') ? undefined : it.continue(),
    )
    await page.locator('input[type=file]').nth(1).setInputFiles(disk)
    await page.getByText('4.19 MB of 9.44 MB').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('4.19 MB of 9.44 MB, paused').waitFor()
    await check('a paused upload')
    await page.unroute(images)
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByRole('cell', { name: 'disk with spaces.img', exact: true }).waitFor()
    const [first, second, third] = [
      'bytes 0-4194303/9437184',
      'bytes 4194304-8388607/9437184',
      'bytes 8388608-9437183/9437184',
    ]
    expect(parts.filter((it) => it !== '')).toEqual([
      ...['bytes */9437184', first, second],
      ...['bytes */9437184', second, third],
    ])
    await check('images')
    // A new name by keys alone; a refusal is told within the dialog.
    await page.getByRole('button', { name: 'Rename disk with spaces.img' }).press('Enter')
    const name = page.getByRole('dialog').getByLabel('Name')
    await check('rename an image')
    expect(await name.evaluate((it) => it === document.activeElement)).toBe(true)
    expect(await page.getByRole('button', { name: 'Rename', exact: true }).isDisabled()).toBe(true)
    await name.fill('disk.bin')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('alert').getByText('keep its extension').waitFor()
    await page.keyboard.press('Escape')
    // Keys go on from where they were.
    const focused = () => page.evaluate('document.activeElement.title')
    await expect.poll(focused).toBe('Rename disk with spaces.img')
    await page.keyboard.press('Enter')
    await name.fill('disk.img')
    await page.keyboard.press('Enter')
    await page.getByRole('cell', { name: 'disk.img', exact: true }).waitFor()
    await expect.poll(focused).toBe('Rename disk.img')
    expect(await page.getByRole('cell', { name: 'disk with spaces.img', exact: true }).count()).toBe(0)
    // A file of the same name is sent only when the user says so.
    const input = page.locator('input[type=file]').nth(1)
    const same = { name: 'disk.img', mimeType: '', buffer: Buffer.from('other') }
    await input.setInputFiles([same, { ...same, name: 'new.img' }])
    await page.getByRole('dialog', { name: 'Replace the image?' }).getByText('disk.img, used by: no open lab').waitFor()
    await page.getByRole('cell', { name: 'new.img', exact: true }).waitFor({ state: 'attached' })
    await check('replace an image')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('row', { name: /^disk\.img 9\.44 MB/ }).waitFor()
    await input.setInputFiles(same)
    await page.getByRole('button', { name: 'Replace', exact: true }).click()
    await page.getByRole('row', { name: /^disk\.img 5 bytes/ }).waitFor()
    await page.getByRole('button', { name: 'Delete disk.img' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('cell', { name: 'disk.img', exact: true }).waitFor({ state: 'detached' })

    // The service takes any file; one that is no program of the kind would go unseen.
    await page
      .locator('input[type=file]')
      .first()
      .setInputFiles({ name: 'notes.txt', mimeType: '', buffer: Buffer.from('1') })
    await page.getByRole('alert').getByText('not an image for iou').waitFor()
    const stored = () => service.fetch('/v2/compute/iou/images/notes.txt', { headers: { authorization } })
    expect(await (await stored()).text()).toBe('1')
    await page.getByRole('button', { name: 'Delete the file' }).click()
    await page.getByText('notes.txt').waitFor({ state: 'detached' })
    expect((await stored()).status).toBe(409)

    await page.getByRole('link', { name: 'Tokens' }).click()
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill('class 1')
    await page.getByLabel('Role').selectOption('read')
    await page.getByLabel('Projects').fill('class-*\nexam')
    await page.getByLabel('Max running').fill('5')
    // A click on the margin of a dialog is none beside it.
    await page.getByRole('dialog').click({ position: { x: 4, y: 4 } })
    await check('new token')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    // It is shown once: a click beside the dialog leaves it there.
    await page.mouse.click(5, 600)
    const token = await page.locator('.fix code').innerText()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('row', { name: /class 1 read, at most 5 running a lab class-\*, exam/ }).waitFor()
    await check('tokens')
    // On a phone the cells of a row are below each other.
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.getByRole('main').evaluate((it) => it.scrollWidth - it.clientWidth)).toBe(0)
    await check('tokens on a phone')
    // All screens are in sight in the head of a user who has signed in, also on a tablet.
    const screens = page.getByRole('navigation', { name: 'Screens' })
    for (const width of [390, 800, 1280]) {
      await page.setViewportSize({ width, height: 900 })
      expect(await screens.evaluate((it) => it.scrollWidth - it.clientWidth), `${width} px`).toBe(0)
    }
    const ask = () => service.fetch('/v2/session', { headers: { authorization: `Bearer ${token}` } })
    expect((await ask()).status).toBe(200)
    await page.getByRole('button', { name: 'Revoke class 1' }).click()
    await page.getByRole('button', { name: 'Revoke', exact: true }).click()
    await page.getByRole('row', { name: /class 1/ }).waitFor({ state: 'detached' })
    expect((await ask()).status).toBe(401)

    await page.getByRole('link', { name: 'Computes' }).click()
    await page.getByRole('meter', { name: 'Memory' }).first().waitFor()
    await check('computes')
    // A refusal is told within the dialog: what is behind it is told by no screen reader.
    await page.getByRole('button', { name: 'Add by address …' }).click()
    await page.getByLabel('Name').fill('far')
    await page.getByLabel('Protocol').selectOption('http')
    await page.getByLabel('Host').fill('no host')
    await page.getByLabel('Port').fill('3080')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('dialog').getByRole('alert').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Add a machine' }).click()
    await page.getByLabel('Name of the token').fill('room 2')
    await page.getByRole('button', { name: 'Create a token' }).click()
    await page.getByText('The token will not be shown again.').waitFor()
    const [joinToken = '', command] = await page.locator('.fix code').allInnerTexts()
    expect(command).toBe(`patchbay serve --join ${service.url.replace('http', 'ws')} --join-token-file join-token`)
    await check('join')
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('link', { name: 'Tokens' }).click()
    await page.getByRole('row', { name: new RegExp(`room 2 join .*${joinToken.slice(-4)}`) }).waitFor()
    await page.getByRole('link', { name: 'Doctor' }).click()
    await page.locator('.check').first().waitFor()
    await check('doctor')
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByText('Dark', { exact: true }).click()
    await check('settings')
    // All keys are in sight one after the other: the screen scrolls, not the list.
    expect(await page.getByLabel('Keys', { exact: true }).evaluate((it) => it.scrollHeight - it.clientHeight)).toBe(0)
    await page.getByLabel('Keys of one character are commands').uncheck()
    await page.reload()
    await page.getByRole('radio', { name: 'Dark' }).and(page.locator(':checked')).waitFor({ state: 'attached' })
    expect(await page.getByLabel('Keys of one character are commands').isChecked()).toBe(false)
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark')
    await page.getByRole('link', { name: 'Labs' }).click()
    await lab.newLab('Spoken')
    await page.keyboard.press('?')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find a node or a command' }).waitFor()
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'detached' })
    expect([...found, ...lab.faults.filter((it) => !/status of 400/.test(it))]).toEqual([])
  },
  240_000,
)
