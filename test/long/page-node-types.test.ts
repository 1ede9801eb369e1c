import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabTemplate } from '../../src/model/lab/template.ts'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { emptyDisk } from '../support/empty-disk.ts'
import { LabPage } from '../support/lab-page.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()

testWith(
  browser,
  requireProgram('qemu-system-x86_64'),
  requireProgram('qemu-img'),
)('a router from a disk of the user is a node type, and runs, after six gestures and no text', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await LabPage.open(service.url)
  const { page } = lab
  await lab.newLab('Routers')
  const gestures: (() => Promise<unknown>)[] = [
    () => page.getByRole('button', { name: 'Add node type' }).click(),
    () =>
      page.locator('.node-type input[type=file]').setInputFiles({
        name: 'vios-adventerprisek9-m.qcow2',
        mimeType: 'application/octet-stream',
        buffer: emptyDisk(),
      }),
    () => page.getByRole('button', { name: 'Add', exact: true }).click(),
    () => page.getByRole('button', { name: 'IOSv', exact: true }).click(),
    () => page.getByRole('button', { name: 'Start', exact: true }).click(),
    () => page.getByRole('button', { name: 'Console', exact: true }).click(),
  ]
  for (const gesture of gestures) await gesture()
  await lab.node('IOSv-1', '.*running').waitFor()
  await page.locator('.xterm').waitFor()
  const [type] = (await service.call<LabTemplate[]>('GET', '/v2/templates')).filter(({ builtin }) => !builtin)
  // It runs: a deletion asks first, and says afterwards what is gone, with a way back.
  await lab.node('IOSv-1').focus()
  await page.keyboard.press('Delete')
  await page.getByRole('dialog', { name: 'Delete IOSv-1?' }).getByRole('button', { name: 'Delete' }).click()
  const toast = page.locator('.toast', { hasText: 'IOSv-1 deleted' })
  await toast.waitFor()
  await lab.node('IOSv-1').waitFor({ state: 'detached' })
  await toast.getByRole('button', { name: 'Undo' }).click()
  await lab.node('IOSv-1', '.*stopped').waitFor()
  expect(type).toMatchObject({
    ...{ name: 'IOSv', template_type: 'machine-emulator', category: 'router', symbol: 'router' },
    ...{ ram: 512, adapters: 4, platform: 'x86_64', hda_disk_image: 'vios-adventerprisek9-m.qcow2' },
  })
  expect(lab.faults).toEqual([])
})

testWith(browser, requireProgram('qemu-system-x86_64'))(
  'node types are made of a kind, changed, copied and deleted; their forms have parts',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    await lab.newLab('Types')
    const own = async () =>
      (await service.call<LabTemplate[]>('GET', '/v2/templates')).filter(({ builtin }) => !builtin)
    await page.getByRole('button', { name: 'Add node type' }).click()
    await page.getByRole('button', { name: 'QEMU machine' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.locator('.node-type input[type=file]').setInputFiles({
      name: 'notes.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('hello'),
    })
    await page.getByText('No node starts from notes.txt').waitFor()

    await page.getByRole('button', { name: 'QEMU machine' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Server')
    await page.getByLabel('RAM').fill('1024')
    await page.getByText('More', { exact: true }).click()
    await page.getByText('Disks', { exact: true }).waitFor()
    expect(await page.getByLabel('Options').isVisible()).toBe(false)
    await page.getByLabel('Search settings').fill('kernel')
    await page.getByLabel('Kernel command line').fill('quiet')
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('button', { name: 'Change Server' }).waitFor()
    expect(await own()).toMatchObject([{ name: 'Server', ram: 1024, kernel_command_line: 'quiet', platform: 'x86_64' }])

    await page.getByRole('button', { name: 'Change Server' }).click()
    await page.getByLabel('CPUs').fill('2')
    await page.getByText('Symbol: ').click()
    await page.getByRole('button', { name: 'server', exact: true }).click()
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(own).toMatchObject([{ name: 'Server', ram: 1024, cpus: 2, symbol: 'server' }])
    await page.getByRole('button', { name: 'Change Server' }).click()
    await page.getByRole('button', { name: 'Duplicate' }).click()
    await page.getByRole('button', { name: 'Change Server-copy' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Change Server-copy' }).waitFor({ state: 'detached' })
    expect(await own()).toHaveLength(1)
    expect(lab.faults).toEqual([])
  },
)

testWith(
  browser,
  requireProgram('qemu-system-x86_64'),
  requireProgram('qemu-img'),
)('from an empty page to the console of a router, cabled by chosen ports: twelve gestures, one text', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await LabPage.open(service.url)
  const { page } = lab
  const counts = { gestures: 0, texts: 0 }
  const gesture = async (doing: Promise<unknown>) => {
    counts.gestures += 1
    await doing
  }
  await gesture(page.getByRole('button', { name: 'New lab' }).first().click())
  counts.texts += 1
  await page.getByLabel('Name').fill('Router')
  await gesture(page.keyboard.press('Enter'))
  await gesture(page.getByRole('button', { name: 'Add node type' }).click())
  const disk = { name: 'vios-adventerprisek9-m.qcow2', mimeType: 'application/octet-stream', buffer: emptyDisk() }
  await gesture(page.locator('.node-type input[type=file]').setInputFiles(disk))
  await gesture(page.getByRole('button', { name: 'Add', exact: true }).click())
  await gesture(lab.place('IOSv', { x: 200, y: 250 }, 'IOSv-1'))
  await gesture(lab.place('Switch', { x: 500, y: 250 }, 'Switch1'))
  await gesture(lab.drag('IOSv-1', 'Switch1'))
  await gesture(page.getByLabel('Port of IOSv-1').selectOption({ index: 2 }))
  await gesture(page.getByRole('button', { name: 'Ethernet5', exact: true }).click())
  await gesture(page.getByRole('button', { name: 'Start all nodes' }).click())
  await lab.node('IOSv-1', '.*running').waitFor()
  await gesture(lab.node('IOSv-1').dblclick())
  await page.locator('.xterm').waitFor()
  const [link] = await service.call<LabLink[]>('GET', '/v2/projects/Router/links')
  expect(link?.nodes.map(({ adapter_number, port_number }) => `${adapter_number}/${port_number}`).sort()).toEqual([
    ...['0/5', '2/0'],
  ])
  expect(counts).toEqual({ gestures: 12, texts: 1 })
  expect(lab.faults).toEqual([])
})

testWith(browser)('an image that is stored becomes a node type from its row', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.fetch('/v2/compute/machine-emulator/images/alpine.qcow2', { method: 'POST', body: emptyDisk() })
  const lab = await LabPage.open(service.url, '/#/images')
  await lab.page.getByRole('button', { name: 'Make a node type of alpine.qcow2' }).click()
  await lab.page.getByRole('button', { name: 'Add', exact: true }).click()
  await lab.page.getByText('Node type Alpine was added.').waitFor()
  const types = await service.call<LabTemplate[]>('GET', '/v2/templates')
  expect(types.at(-1)).toMatchObject({ name: 'Alpine', hda_disk_image: 'alpine.qcow2' })
  expect(lab.faults).toEqual([])
})

testWith(
  browser,
  requireProgram('qemu-system-x86_64'),
  requireProgram('qemu-img'),
)('a start that fails says why, counts as a problem, and shows its node', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.fetch('/v2/compute/machine-emulator/images/gone.qcow2', { method: 'POST', body: emptyDisk() })
  await service.call('POST', '/v2/projects', { name: 'Failing' })
  const settings = { platform: 'x86_64', hda_disk_image: 'gone.qcow2' }
  const type = await service.call<LabTemplate>('POST', '/v2/templates', {
    ...{ name: 'R', template_type: 'machine-emulator', ...settings },
  })
  const use = `/v2/projects/Failing/templates/${type.template_id}`
  for (const name of ['R1', 'R2']) await service.call('POST', use, { name, x: name === 'R1' ? -200 : 100, y: 0 })
  await rm(join(service.data, 'images/machine-emulator/gone.qcow2'))
  const lab = await LabPage.open(service.url, '/#/labs/Failing')
  const { page } = lab
  await lab.node('R1').focus()
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  const toast = page.locator('.toast', { hasText: /^R1 did not start: "gone\.qcow2" does not exist/ })
  await toast.waitFor()
  await page.getByRole('button', { name: '1 problem' }).waitFor()
  expect(await lab.node('R1').locator('title').textContent()).toMatch(/gone\.qcow2/)
  await page.keyboard.press('Escape')
  await page.locator('header').click()
  await toast.getByRole('button', { name: 'Details' }).click()
  await page.getByRole('complementary', { name: 'Node R1' }).waitFor()
  await page.getByRole('button', { name: 'Start all nodes' }).click()
  const both = page.locator('.toast', { hasText: /^0 started, 2 failed\. R[12] did not start: / })
  await both.getByRole('button', { name: 'Details' }).click()
  // Each says why, also when the message is gone.
  const selected = page.getByRole('complementary', { name: 'Selection' })
  await expect.poll(() => selected.getByText('"gone.qcow2" does not exist').count()).toBe(2)
  for (const toast of await page.locator('.toast').all())
    await toast.getByRole('button', { name: /^(Close|Dismiss)/ }).click()
  await page.locator('header').click()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: '2 problems' }).click()
  await expect.poll(() => selected.getByText('"gone.qcow2" does not exist').count()).toBe(2)
  await page.getByRole('status').getByText('Live').waitFor()
  expect(await accessibilityFaults(page)).toEqual([])
  expect(lab.faults).toEqual([])
})

testWith(browser)(
  'a kind whose emulator is missing cannot be chosen, and the sheet says how it is installed',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', 'dynamips.path': 'no-such-dynamips' })
    const router7200 = { name: 'Old router', template_type: 'dynamips', platform: 'c7200', image: 'c7200.bin' }
    for (const type of [router7200, { name: 'Access', template_type: 'switch' }])
      await service.call('POST', '/v2/templates', type)
    const { page } = await LabPage.open(service.url)
    await page.getByRole('button', { name: 'New lab' }).first().click()
    await page.getByLabel('Name').fill('Missing')
    await page.getByRole('button', { name: 'Create' }).click()
    // A type of one's own is grey in the palette, and says why.
    const grey = page.locator('.template-row.is-missing')
    await grey.getByText('dynamips: not found').waitFor()
    expect(await grey.locator('bdi').allInnerTexts()).toEqual(['Old router'])
    const hint = await grey.getByRole('button', { name: /^Old router/ }).getAttribute('title')
    expect(hint).toMatch(/^It cannot run here\. dynamips: not found\. sudo apt-get install dynamips/)
    await page.getByRole('button', { name: 'Access', exact: true }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Add node type' }).click()
    const missing = page.getByRole('region', { name: 'Not installed' })
    const router = missing.getByRole('listitem').filter({ hasText: 'Dynamips router' })
    await router.getByText('dynamips: not found').waitFor()
    await router.getByText('sudo apt-get install dynamips').waitFor()
    await page.getByRole('button', { name: 'Switch', exact: true }).last().waitFor()
    expect(await page.getByRole('button', { name: 'Dynamips router' }).count()).toBe(0)
    expect(await accessibilityFaults(page)).toEqual([])
    // A type can be made of an image all the same, for a machine that gets the emulator later.
    const image = Buffer.alloc(4096)
    image.set([0x7f, 0x45, 0x4c, 0x46, 1, 2, 1])
    await page.locator('.node-type input[type=file]').setInputFiles({
      ...{ name: 'c3725-adventerprisek9-mz.124-15.T14.bin', mimeType: 'application/octet-stream', buffer: image },
    })
    await page.getByText('sudo apt-get install dynamips').waitFor()
    await page.getByLabel('Name', { exact: true }).waitFor()
  },
)

testWith(
  browser,
  requireProgram('qemu-system-x86_64'),
  requireProgram('qemu-img'),
)('the message of a start without an image uploads it, and the node starts', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const file = `lab: routers
nodes:
  R1: { kind: machine, platform: x86_64, image: gone.qcow2 }
  R2: { kind: machine, platform: x86_64, image: gone.qcow2 }
  R3: { kind: machine, platform: x86_64, image: other.qcow2 }
`
  const headers = { 'content-type': 'application/yaml' }
  await service.fetch('/v2/projects/routers/topology?partial=true', { method: 'PUT', headers, body: file })
  const lab = await LabPage.open(service.url, '/#/labs/routers')
  const { page } = lab
  await lab.node('R1').focus()
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  const toast = page.locator('.toast.is-error')
  await toast.getByText('R1 did not start: "gone.qcow2" does not exist').waitFor()
  // The press on *Upload* asks for the file at once; it has the name that the node has for it, whatever it is called here.
  const chooser = page.waitForEvent('filechooser')
  await toast.getByRole('button', { name: 'Upload' }).click()
  const given = { name: 'mine.img', mimeType: 'application/octet-stream', buffer: emptyDisk() }
  await (await chooser).setFiles(given)
  const dialog = page.getByRole('dialog', { name: 'Upload gone.qcow2' })
  await dialog.getByText('is uploaded').waitFor()
  expect(await accessibilityFaults(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Start R1' }).press('Enter')
  await lab.node('R1', '.*running').waitFor()

  // Of several nodes each image is in a row.
  await lab.node('R2').focus()
  await lab.node('R3').click({ modifiers: ['Shift'] })
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await toast.getByText(/1 failed\. R3 did not start: "other\.qcow2" does not exist/).waitFor()
  await toast.getByRole('button', { name: 'Details' }).click()
  await page.getByRole('complementary', { name: 'Node R3' }).waitFor()
  expect(lab.faults).toEqual([])
})

testWith(browser, requireProgram('qemu-system-x86_64'))(
  'disks are rows, with the images that are there, and what differs from the node type is marked',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    for (const name of ['router.qcow2', 'data.qcow2'])
      await service.fetch(`/v2/compute/machine-emulator/images/${name}`, { method: 'POST', body: emptyDisk() })
    await service.call('POST', '/v2/projects', { name: 'Disks' })
    const type = await service.call<LabTemplate>('POST', '/v2/templates', {
      ...{
        name: 'IOSv',
        template_type: 'machine-emulator',
        platform: 'x86_64',
        ram: 512,
        hda_disk_image: 'router.qcow2',
      },
    })
    await service.call('POST', `/v2/projects/Disks/templates/${type.template_id}`, { name: 'R1', x: 0, y: 0 })
    const lab = await LabPage.open(service.url, '/#/labs/Disks')
    const { page } = lab
    await lab.node('R1').focus()
    const disks = () => page.getByRole('group', { name: /^Disk \d$/ }).count()
    await page.getByRole('group', { name: 'Disk 1' }).waitFor()
    expect(await disks()).toBe(1)
    expect(await page.locator('.different').count()).toBe(0)

    // One more, which has the focus, and offers the images with their sizes.
    await page.getByRole('button', { name: 'Disk', exact: true }).click()
    const second = page.getByRole('group', { name: 'Disk 2' })
    const image = second.getByLabel('Image')
    await expect.poll(() => image.evaluate((it) => it === document.activeElement)).toBe(true)
    const titles = () => second.locator('label').allInnerTexts()
    await expect.poll(titles).toEqual(['Image', 'Interface', 'New empty disk'])
    expect(await second.locator('.help').count()).toBe(0)
    const offered = () =>
      second
        .locator('datalist option')
        .evaluateAll((all) => all.map((it) => `${(it as HTMLOptionElement).value} ${(it as HTMLOptionElement).label}`))
    await expect
      .poll(offered)
      .toEqual(expect.arrayContaining(['data.qcow2 1 MB (file: 262 KB)', 'router.qcow2 1 MB (file: 262 KB)']))
    await page.keyboard.type('data.qcow2')
    await second.getByText('IOSv has none').waitFor()
    await page.getByLabel('RAM').fill('1024')
    await page.getByText('IOSv has 512').waitFor()
    // The head of the form says so, and goes there; the foot is in view, however far the end of the form is.
    const differs = page.getByText('2 settings differ from IOSv: RAM, Disk 2')
    const foot = await page.getByRole('button', { name: 'Save', exact: true }).boundingBox()
    expect((foot?.y ?? 900) + (foot?.height ?? 0)).toBeLessThan(900)
    await differs.getByRole('button', { name: 'Disk 2' }).click()
    expect(await second.getByLabel('Image').evaluate((it) => it === document.activeElement)).toBe(true)
    await page.getByLabel('Search settings').fill('nonesuch')
    await page.getByText('No setting is called so.').waitFor()
    await page.getByLabel('Search settings').fill('')
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Save' }).click()
    const stored = async () => {
      const [node] = await service.call<{ properties: object }[]>('GET', '/v2/projects/Disks/nodes')
      return node?.properties
    }
    await expect.poll(stored).toMatchObject({ ram: 1024, hda_disk_image: 'router.qcow2', hdb_disk_image: 'data.qcow2' })
    await page.getByText('IOSv has 512').waitFor()

    await page.getByRole('button', { name: 'Remove Disk 2' }).click()
    await expect.poll(disks).toBe(1)
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(stored).toMatchObject({ hdb_disk_image: '' })

    // One that nobody needs after all.
    await page.getByRole('button', { name: 'Disk', exact: true }).click()
    await expect.poll(disks).toBe(2)
    await page.getByRole('button', { name: 'Discard' }).click()
    await expect.poll(disks).toBe(1)
    expect(await page.getByRole('button', { name: 'Discard' }).count()).toBe(0)
    expect(lab.faults).toEqual([])
  },
)

testWith(
  browser,
  requireProgram('qemu-system-x86_64'),
  requireProgram('qemu-img'),
)('a machine and a node type get a new empty disk, attached as the first one', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.fetch('/v2/compute/machine-emulator/images/router.qcow2', { method: 'POST', body: emptyDisk() })
  await service.call('POST', '/v2/projects', { name: 'Disks' })
  const type = await service.call<LabTemplate>('POST', '/v2/templates', {
    ...{ name: 'IOSv', template_type: 'machine-emulator', platform: 'x86_64' },
    ...{ hda_disk_image: 'router.qcow2', hda_disk_interface: 'virtio' },
  })
  await service.call('POST', `/v2/projects/Disks/templates/${type.template_id}`, { name: 'R1', x: 0, y: 0 })
  const lab = await LabPage.open(service.url, '/#/labs/Disks')
  const { page } = lab
  await lab.node('R1').focus()
  await page.getByRole('button', { name: 'Disk', exact: true }).click()
  const second = page.getByRole('group', { name: 'Disk 2' })
  expect(await second.getByLabel('Interface').inputValue()).toBe('virtio')
  // Enter makes the disk, and does not send the form.
  await second.getByLabel('New empty disk').fill('0')
  await page.keyboard.press('Enter')
  await second.getByText('Expected a size such as 1.').waitFor()
  await second.getByLabel('New empty disk').fill('1')
  expect(await accessibilityFaults(page)).toEqual([])
  await page.keyboard.press('Enter')
  await second.getByLabel('New empty disk').waitFor({ state: 'detached' })
  expect(await second.getByLabel('Image').inputValue()).toBe('R1-disk2.qcow2')
  expect(await second.getByLabel('Image').evaluate((it) => it === document.activeElement)).toBe(true)
  await expect.poll(() => second.locator('datalist option[value="R1-disk2.qcow2"]').count()).toBe(1)
  await page.getByRole('button', { name: 'Save' }).click()
  const stored = async () =>
    (await service.call<{ properties: object }[]>('GET', '/v2/projects/Disks/nodes'))[0]?.properties
  await expect.poll(stored).toMatchObject({ hdb_disk_image: 'R1-disk2.qcow2', hdb_disk_interface: 'virtio' })
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await lab.node('R1', '.*running').waitFor()

  await page.getByRole('button', { name: 'Change IOSv' }).click()
  await page.getByText('More', { exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Disk', exact: true }).click()
  await dialog.getByLabel('New empty disk').fill('2.5')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByLabel('New empty disk').waitFor({ state: 'detached' })
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })

  // A machine that is installed from a CD-ROM gets its first disk so.
  await page.getByRole('button', { name: 'Add node type' }).click()
  const buffer = Buffer.alloc(40_000)
  buffer.write('CD001', 32_769)
  const iso = { name: 'install.iso', mimeType: 'application/octet-stream', buffer }
  await page.locator('.node-type input[type=file]').setInputFiles(iso)
  await expect.poll(() => dialog.getByRole('button', { name: 'Add', exact: true }).isEnabled()).toBe(true)
  await page.getByText('More', { exact: true }).click()
  await dialog.getByRole('button', { name: 'Disk', exact: true }).click()
  await dialog.getByRole('group', { name: 'Disk 1' }).getByLabel('New empty disk').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()

  const types = await service.call<LabTemplate[]>('GET', '/v2/templates')
  expect(types.at(-1)).toMatchObject({ hdb_disk_image: 'IOSv-disk2.qcow2', hdb_disk_interface: 'virtio' })
  expect(await service.call('GET', '/v2/compute/machine-emulator/images')).toMatchObject([
    { path: 'IOSv-disk2.qcow2', virtual_size: 2.5 * 2 ** 30 },
    { path: 'R1-disk2.qcow2', virtual_size: 2 ** 30 },
    { path: 'install.iso' },
    { path: 'router.qcow2' },
  ])
  expect(lab.faults).toEqual([])
})
