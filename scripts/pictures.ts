import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { startService, startServiceWith } from '../test/bench/service.ts'
import { launchChromium } from '../test/support/launch-chromium.ts'

// Makes docs/pictures: each screen of the page in both themes and three widths, with a lab that runs. `npm run pictures`. Needs Chromium and
// qemu-system-x86_64.

const directory = join(import.meta.dirname, '../docs/pictures')
const sizes = [
  { width: 390, height: 844 },
  { width: 800, height: 1000 },
  { width: 1440, height: 900 },
] as const
const themes = ['light', 'dark'] as const
/** Time for animations and consoles to end, and for the firmware of a machine to show its words, ms. */
const [settleMs, firmwareMs] = [600, 3000]

/** The lab of the pictures: name, kind, place and number of its address; and ends with their ports, and impairment. */
const campus = {
  nodes: [
    ['Core', 'switch', 0, -190],
    ['Floor1', 'switch', -260, 0],
    ['Floor2', 'switch', 260, 0],
    ['Anna', 'pc', -390, 190, 1],
    ['Berta', 'pc', -260, 190, 2],
    ['Clara', 'pc', -130, 190, 3],
    ['Dora', 'pc', 150, 190, 4],
    ['Emil', 'pc', 280, 190, 5],
    ['Branch', 'pc', 400, -190, 6],
  ],
  links: [
    ['Floor1', 7, 'Core', 0],
    ['Floor2', 7, 'Core', 1],
    ['Branch', 0, 'Core', 2, { delay: [40, 5], packet_loss: [1] }],
    ['Anna', 0, 'Floor1', 0],
    ['Berta', 0, 'Floor1', 1],
    ['Clara', 0, 'Floor1', 2],
    ['Dora', 0, 'Floor2', 0],
    ['Emil', 0, 'Floor2', 1],
  ],
} as const

/** A lab of containerlab, of which not all can be taken over. */
const foreignLab = Buffer.from(`name: dc
topology:
  nodes:
    leaf1: {kind: nokia_srlinux, image: ghcr.io/nokia/srlinux}
    host1: {kind: linux, image: alpine, binds: [a:b]}
    br1: {kind: bridge}
  links:
    - endpoints: [leaf1:e1-1, host1:eth1]
    - endpoints: [leaf1:e1-2, br1:eth2]
`)

/** The students of a class. */
const students = ['Ada', 'Barbara', 'Edsger', 'Grace', 'Leslie', 'Lynn', 'Radia', 'Sally', 'Tony', 'Vint', 'Whitfield']

const password = 'of-the-pictures'
const guarded = await startServiceWith({ PATCHBAY_USER: 'anna', PATCHBAY_PASSWORD: password })
const service = await startService('--pc-engine', 'embedded')
const chromium = await launchChromium()
try {
  await mkdir(directory, { recursive: true })
  for (const name of await readdir(directory)) await rm(join(directory, name))
  const page = await (await chromium.newContext({ reducedMotion: 'reduce' })).newPage()
  await page.goto(guarded.url)
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await pictures(page, 'sign-in')
  await page.goto(`${guarded.url}/?organization=net-course`)
  await page.getByText('Organization net-course').waitFor()
  await pictures(page, 'sign-in-organization')
  await page.goto(guarded.url)
  await tokens(page)
  await course(page)
  await labs(page)
  await exercise(page)
  await machine(page)
  await hall(page)
  await about(page)
} finally {
  await chromium.close()
  await service.close()
  await guarded.close()
}

/** The tokens of a service that has credentials. */
async function tokens(page: Page): Promise<void> {
  await page.getByText('User and password').click()
  await page.getByLabel('User', { exact: true }).fill('anna')
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('link', { name: 'Tokens' }).click()
  for (const [name, role] of [
    ['course 3', 'operate'],
    ['wall display', 'read'],
  ] as const) {
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Role').selectOption(role)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'Done' }).click()
  }
  await pictures(page, 'tokens')
  await page.getByRole('link', { name: 'Computes' }).click()
  await page.getByRole('button', { name: 'Add a machine' }).click()
  await page.getByLabel('Name of the token').fill('lab room 2')
  await page.getByRole('button', { name: 'Create a token' }).click()
  await page.getByText('The token will not be shown again.').waitFor()
  await pictures(page, 'join')
}

/** A class of the lab with tasks, at the service that has credentials. */
async function course(page: Page): Promise<void> {
  const authorization = `Basic ${Buffer.from(`anna:${password}`).toString('base64')}`
  const ask = (method: string, path: string, body?: BodyInit) =>
    fetch(guarded.url + path, {
      method,
      headers: { authorization, 'content-type': 'application/yaml' },
      body: body ?? null,
    })
  const document = await readFile(join(import.meta.dirname, '../examples/repair/repair.lab.yaml'))
  await ask('PUT', '/v2/projects/repair/topology', document)
  await page.goto(`${guarded.url}/#/classes`)
  await page.getByRole('button', { name: 'New class' }).click()
  await page.getByLabel('Name of the class').fill('netlab')
  await page.getByLabel('Students').fill(students.join('\n'))
  await page.getByLabel('Each gets a copy of the lab').selectOption('repair')
  await pictures(page, 'class-form')
  await page.getByRole('button', { name: 'Make the class' }).click()
  await page.getByRole('button', { name: 'Done' }).waitFor()
  await pictures(page, 'class-links')
  const links = await page.locator('.class-links code').allInnerTexts()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText(`0 of ${students.length} students there`).waitFor()
  const pages: Page[] = []
  for (const link of links.slice(0, 4)) {
    const student = await (await chromium.newContext()).newPage()
    pages.push(student)
    await student.goto(link)
    await student.getByRole('button', { name: /^PRINTER, / }).waitFor({ state: 'attached' })
  }
  for (const name of students.slice(0, 3)) await ask('POST', `/v2/projects/netlab-${name}/nodes/start`)
  await page.getByText('Ada').waitFor()
  await page.getByText(`4 of ${students.length} students there`).waitFor()
  const [first] = pages
  await first?.getByRole('complementary', { name: 'Tasks' }).getByRole('button', { name: 'Check' }).click()
  await first?.getByText('checked at').waitFor()
  // The maps are read when the labs are at rest.
  await pause(firmwareMs)
  await pictures(page, 'class-wall')
  for (const it of pages) await it.context().close()
  await ask('DELETE', '/v2/classes/netlab')
}

/** The screens of labs. */
async function labs(page: Page): Promise<void> {
  await page.goto(service.url)
  await page.getByText('Coming from').waitFor()
  await pictures(page, 'examples')
  await makeCampus()
  for (const name of ['OSPF exercise', 'Scratch']) await service.call('POST', '/v2/projects', { name })
  await service.call('POST', '/v2/projects/Scratch/close')
  await page.goto(service.url)
  await page.getByText('6 nodes, 3 segments').waitFor()
  await pictures(page, 'labs')
  await page
    .locator('input[type=file]')
    .first()
    .setInputFiles({ name: 'dc.clab.yml', mimeType: '', buffer: foreignLab })
  await page.getByRole('status').getByText('nodes can run').waitFor()
  await pictures(page, 'import')
  await page.getByRole('button', { name: 'Close', exact: true }).last().click()
  await page.getByRole('link', { name: 'Campus' }).click()
  const node = (name: string) => page.getByRole('button', { name: new RegExp(`^${name}, `) })
  await node('Anna').waitFor()
  await service.call('POST', '/v2/projects/Campus/snapshots', { name: 'All pings answered' })
  await pictures(page, 'lab')
  await pictures(page, 'menu', async () => {
    await page.keyboard.press('Escape')
    await node('Anna').click({ button: 'right' })
    await page.getByRole('menu').waitFor()
  })
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Add node type' }).click()
  await page.getByRole('dialog').waitFor()
  await pictures(page, 'node-type')
  await page.keyboard.press('Escape')

  await node('Anna').dblclick()
  await page.locator('.xterm-rows', { hasText: 'Anna>' }).waitFor()
  await page.keyboard.type('ping 10.0.0.6 -c 5\r')
  await page.locator('.xterm-rows', { hasText: 'icmp_seq=5' }).waitFor()
  await pictures(page, 'console')
  await page.getByRole('button', { name: 'Close the console of Anna' }).click()
  for (const part of ['Configuration', 'Files']) await page.locator('summary', { hasText: part }).click()
  await pictures(page, 'node')
  const line = page.getByRole('button', { name: /^Link Branch .* to Core / })
  await line.focus()
  await page.getByText('Impairment').waitFor()
  await pictures(page, 'link')

  await node('Branch').dblclick()
  await page.locator('.xterm-rows', { hasText: 'Branch>' }).waitFor()
  await line.focus()
  await page.keyboard.press('p')
  await page.getByText('No frames yet').waitFor()
  await page.getByRole('button', { name: 'Branch', exact: true }).first().click()
  await page.keyboard.type('ping 10.0.0.1 -c 3\r')
  await page.locator('.xterm-rows', { hasText: 'icmp_seq=3' }).waitFor()
  await page.getByRole('button', { name: 'Branch – Core', exact: true }).click()
  await page.getByRole('option', { name: /reply/ }).first().click()
  await line.focus()
  await pictures(page, 'packets')
  await page.getByRole('button', { name: 'Close the packets of Branch – Core' }).click()
  await page.getByRole('button', { name: 'Close the console of Branch' }).click()

  await page.keyboard.press('Escape')
  await page.keyboard.press('t')
  await page.getByRole('table', { name: 'Nodes' }).waitFor()
  await pictures(page, 'list')
  await page.keyboard.press('t')
  await node('Anna').waitFor()
  await page.keyboard.press('Control+k')
  await page.getByPlaceholder('Node, command or node type').fill('st')
  await pictures(page, 'command-bar')
  await page.keyboard.press('Escape')
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  await pictures(page, 'keys')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Shift+C')
  await page.getByLabel('From').fill('Floor1')
  await page.getByLabel('To', { exact: true }).fill('Floor2')
  await pictures(page, 'bulk-links')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.locator('summary', { hasText: 'Events' }).click()
  await pictures(page, 'events')
  await page.getByRole('button', { name: 'Export the lab' }).click()
  await page.getByRole('dialog', { name: 'Export the lab' }).waitFor()
  await pictures(page, 'export')
  await page.goto(`${service.url}/#/labs/Campus/nodes/Anna/console`)
  await page.locator('.xterm-rows', { hasText: 'icmp_seq=5' }).waitFor()
  await pictures(page, 'console-window')
}

/** A lab with tasks, which have been checked. */
async function exercise(page: Page): Promise<void> {
  const body = await readFile(join(import.meta.dirname, '../examples/repair/repair.lab.yaml'))
  const headers = { 'content-type': 'application/yaml' }
  await fetch(`${service.url}/v2/projects/repair/topology?start=true`, { method: 'PUT', headers, body })
  await page.goto(`${service.url}/#/labs/repair`)
  await page.getByRole('button', { name: /^PRINTER, pc, running/ }).waitFor({ state: 'attached' })
  await page.getByRole('complementary', { name: 'Tasks' }).getByRole('button', { name: 'Check' }).click()
  await page.getByText('checked at').waitFor()
  await pictures(page, 'tasks')
}

/** The screen of a machine: the menu of its firmware. */
async function machine(page: Page): Promise<void> {
  const { project_id } = (await service.call('POST', '/v2/projects', { name: 'Two sites' })) as { project_id: string }
  const properties = { platform: 'x86_64', ram: 64, options: '-accel tcg -boot menu=on,splash-time=60000' }
  const body = { name: 'Server', node_type: 'machine-emulator', compute_id: 'local', console_type: 'vnc', properties }
  await service.call('POST', `/v2/projects/${project_id}/nodes`, { ...body, x: 0, y: 0 })
  await service.call('POST', `/v2/projects/${project_id}/nodes/start`)
  await page.goto(`${service.url}/#/labs/Two sites`)
  await page.getByRole('button', { name: /^Server, / }).dblclick()
  await page.getByRole('region', { name: 'Screen of Server' }).locator('canvas').waitFor()
  await pause(firmwareMs)
  await page.keyboard.press('Escape')
  await pause(firmwareMs)
  await pictures(page, 'screen')
  await service.call('POST', `/v2/projects/${project_id}/nodes/stop`)
}

/** A lab that is large enough for the small map. */
async function hall(page: Page): Promise<void> {
  const { project_id } = (await service.call('POST', '/v2/projects', { name: 'Hall' })) as { project_id: string }
  const add = async (name: string, node_type: string, x: number, y: number) => {
    const body = { name, node_type, compute_id: 'local', x, y, properties: {} }
    return (await service.call('POST', `/v2/projects/${project_id}/nodes`, body)) as { node_id: string }
  }
  type Node = { readonly node_id: string }
  const link = (a: Node, portOfA: number, b: Node, portOfB: number) => {
    const end = ({ node_id }: Node, port_number: number) => ({ node_id, adapter_number: 0, port_number })
    return service.call('POST', `/v2/projects/${project_id}/links`, { nodes: [end(a, portOfA), end(b, portOfB)] })
  }
  const spines = [await add('Spine1', 'switch', 900, -300), await add('Spine2', 'switch', 1700, -300)]
  for (let leaf = 0; leaf < 8; leaf++) {
    const at = await add(`Leaf${leaf + 1}`, 'switch', leaf * 370, 0)
    for (const [number, spine] of spines.entries()) await link(at, 6 + number, spine, leaf)
    for (let pc = 0; pc < 6; pc++) {
      const place = [leaf * 370 - 110 + (pc % 3) * 110, 220 + Math.floor(pc / 3) * 130] as const
      await link(await add(`PC${leaf * 6 + pc + 1}`, 'pc', ...place), 0, at, pc)
    }
  }
  await service.call('POST', `/v2/projects/${project_id}/nodes/start`)
  await page.goto(`${service.url}/#/labs/Hall`)
  await page.getByRole('button', { name: /^PC48, pc, running/ }).waitFor({ state: 'attached' })
  for (let presses = 0; presses < 4; presses++) await page.keyboard.press('+')
  await pictures(page, 'large-lab')
}

/** The screens about the service, but the doctor: that tells of the machine. */
async function about(page: Page): Promise<void> {
  const image = 'x'.repeat(3 << 20)
  for (const [kind, name] of [
    ['machine-emulator', 'debian-13.qcow2'],
    ['machine-emulator', 'router-7.1.img'],
  ])
    await fetch(`${service.url}/v2/compute/${kind}/images/${name}`, { method: 'POST', body: image })
  for (const [screen, text] of [
    ['images', 'debian-13.qcow2'],
    ['computes', 'Memory'],
    ['settings', 'Settings'],
  ] as const) {
    await page.goto(`${service.url}/#/${screen}`)
    await page.getByText(text).first().waitFor({ state: 'attached' })
    await pictures(page, screen)
  }
}

/** Makes and starts the lab. */
async function makeCampus(): Promise<void> {
  const { project_id } = (await service.call('POST', '/v2/projects', { name: 'Campus' })) as { project_id: string }
  const ids = new Map<string, string>()
  for (const [name, node_type, x, y, number] of campus.nodes) {
    const properties = number === undefined ? {} : { startup_script: `ip 10.0.0.${number}/24` }
    const body = { name, node_type, compute_id: 'local', x, y, properties }
    const node = (await service.call('POST', `/v2/projects/${project_id}/nodes`, body)) as { node_id: string }
    ids.set(name, node.node_id)
  }
  for (const [a, portOfA, b, portOfB, filters = {}] of campus.links) {
    const end = (name: string, port_number: number) => ({ node_id: ids.get(name), adapter_number: 0, port_number })
    const body = { nodes: [end(a, portOfA), end(b, portOfB)], filters }
    await service.call('POST', `/v2/projects/${project_id}/links`, body)
  }
  await service.call('POST', `/v2/projects/${project_id}/nodes/start`)
}

/** Pictures of what is on the screen, in each theme and width. `show`: shows it in a width, where it does not follow by itself. */
async function pictures(page: Page, screen: string, show = async () => {}): Promise<void> {
  for (const size of sizes) {
    await page.setViewportSize(size)
    await show()
    for (const colorScheme of themes) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await pause(settleMs)
      // Few colours, so that all pictures together are small: they are in the repository.
      const plain = await sharp(await page.screenshot())
        .png({ palette: true, dither: 0 })
        .toBuffer()
      const picture = await sharp(plain).webp({ lossless: true, effort: 6 }).toBuffer()
      await writeFile(join(directory, `${screen}-${size.width}-${colorScheme}.webp`), picture)
    }
  }
  console.log(screen)
}
