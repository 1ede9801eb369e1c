import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'vitest'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { freshDirectory } from '../support/directory.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'
import { zipOf } from '../support/zip.ts'

const browser = requireChromium()

const containerlab = `name: two
topology:
  nodes:
    h1: { kind: linux, binds: [a:b], exec: [ip addr add 10.0.0.1/24 dev eth1] }
    h2: { kind: linux }
  links:
    - endpoints: [h1:eth1, h2:eth1]
`
const labFile = `lab: pair
nodes:
  A: { kind: pc, config: configs/a.vpc }
  B: { kind: pc }
links:
  - [ A, B ]
`
const appliance = JSON.stringify({
  appliance_id: '00000000-0000-4000-8000-000000000000',
  name: 'Firewall of a vendor',
  category: 'firewall',
  qemu: { ram: 1024, adapters: 4, arch: 'x86_64' },
  images: [{ filename: 'fw.qcow2', version: '2', md5sum: 'ab'.repeat(16), filesize: 1000 }],
  versions: [{ name: '2', images: { hda_disk_image: 'fw.qcow2' } }],
})
const file = (name: string, content: string | Buffer) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: Buffer.from(content),
})
/** In the browser: the texts of an SVG document that lie wholly within it. */
const namesInSight = () => {
  const { width, height } = document.documentElement.getBoundingClientRect()
  const isInSight = ({ left, top, right, bottom }: DOMRect) => left > 0 && top > 0 && right < width && bottom < height
  const texts = Array.from(document.querySelectorAll('text'))
  return texts.filter((it) => isInSight(it.getBoundingClientRect())).map((it) => it.textContent)
}

testWith(browser)(
  'labs of several programs are imported by a drop and by a button, and what is not imported is listed',
  async () => {
    const [service, directory] = [await TestService.start({ 'pc.engine': 'embedded' }), await freshDirectory()]
    const lab = await LabPage.open(service.url)
    const { page } = lab
    await page.getByText('No labs yet').waitFor()

    // One file without a remark: the page goes to the lab.
    const files = [file('pair.lab.yaml', labFile), file('a.vpc', 'ip 10.0.0.1/24\n')]
    const transfer = await page.evaluateHandle(
      (given) => {
        const all = new DataTransfer()
        for (const { name, text } of given) all.items.add(new File([text], name))
        return all
      },
      files.map(({ name, buffer }) => ({ name, text: buffer.toString() })),
    )
    await page.dispatchEvent('main', 'drop', { dataTransfer: transfer })
    await lab.node('A').waitFor()
    await lab.link('A', 'B').waitFor({ state: 'attached' })

    // The lab itself can be saved, too.
    await page.getByRole('button', { name: 'Export the lab' }).click()
    const text = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Lab file' }).click()
    const saved = await (await (await text).createReadStream()).toArray()
    expect(Buffer.concat(saved).toString()).toMatch(/^ {2}A:/m)
    await page.getByRole('button', { name: 'Export the lab' }).click()
    const map = page.waitForEvent('download')
    await page.getByRole('button', { name: 'SVG' }).click()
    expect((await map).suggestedFilename()).toBe('pair.svg')
    // A document of its own, with all names in sight.
    const picture = (await page.context().browser()?.newPage()) ?? page
    await (await map).saveAs(join(directory, 'pair.svg'))
    await picture.goto(pathToFileURL(join(directory, 'pair.svg')).href)
    expect((await picture.evaluate(namesInSight)).sort()).toEqual(['A', 'B', 'e0', 'e0'])
    await picture.close()

    await page.getByRole('link', { name: 'All labs' }).click()
    const exported = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export pair' }).click()
    const archive = await (await exported).createReadStream()
    const bytes = Buffer.concat(await archive.toArray())
    await page
      .locator('input[type=file]')
      .setInputFiles([
        file('two.clab.yml', containerlab),
        file('pair again.gns3project', bytes),
        file('firewall.gns3a', appliance),
        file('pair.lab.yaml', labFile.replace('configs/a.vpc', '{ text: "" }')),
        file('broken.yaml', 'nodes: [\n'),
        file('noise.zip', Buffer.from('PK\u0003\u0004 and nothing else')),
        file('<img src=x onerror=alert(1)>.json', '{"topology": "<script>alert(2)</script>"}'),
      ])
    const dialog = page.getByRole('dialog', { name: 'Import' })
    await dialog.getByRole('button', { name: 'Close' }).waitFor()
    const entry = (name: string) => dialog.locator('.import', { hasText: name })
    await entry('two.clab.yml').getByText('nodes do not see files of the host').waitFor()
    await entry('two.clab.yml').getByText('topology.nodes.h1.binds').waitFor()
    await entry('pair again').getByRole('link', { name: 'pair again' }).waitFor()
    await entry('firewall.gns3a').getByText('Firewall of a vendor').waitFor()
    await entry('firewall.gns3a').getByText('fw.qcow2').waitFor()
    await entry('pair.lab.yaml').getByRole('link', { name: 'pair-2' }).waitFor()
    for (const name of ['broken.yaml', 'noise.zip', '<img src=x']) await entry(name).getByRole('alert').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'two', exact: true }).click()
    await lab.link('h1', 'h2').waitFor({ state: 'attached' })
    // The browser itself tells answers with 4xx.
    expect(lab.faults.filter((it) => !/status of 4\d\d/.test(it))).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'a file that would run a program is imported only after the page has shown what it would run',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { page } = await LabPage.open(service.url)
    const text = 'lab: downloaded\nnodes: { A: { kind: pc, config: { text: "!touch /tmp/x" } } }\n'
    const choose = () => page.locator('input[type=file]').first().setInputFiles(file('downloaded.lab.yaml', text))
    const dialog = page.getByRole('dialog', { name: 'Import' })
    await choose()
    await dialog.getByRole('alertdialog').getByText('!touch /tmp/x').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Do not import' }).click()
    await dialog.getByText('cancelled').waitFor()
    expect(await service.call('GET', '/v2/projects')).toEqual([])
    await dialog.getByRole('button', { name: 'Close' }).click()
    await choose()
    await dialog.getByRole('button', { name: 'Trust and import' }).click()
    await page.getByRole('button', { name: /^A, / }).waitFor()
  },
  120_000,
)

/** Only the hosts can run: SR Linux is a container of its vendor, and the images of the other router and of FRR are not there. */
const fabric = `name: dc
topology:
  nodes:
    leaf: { kind: nokia_srlinux, image: ghcr.io/nokia/srlinux:24.10, license: key.txt, startup-config: leaf.cfg }
    router: { kind: vyosnetworks_vyos, image: vyos:1.4 }
    frr: { kind: linux, image: quay.io/frrouting/frr:9.1.0, binds: [vtysh.conf:/etc/frr/vtysh.conf] }
    h1: { kind: linux, exec: [ip addr add 10.0.0.1/24 dev eth1] }
    h2: { kind: linux, exec: [ip addr add 10.0.0.2/24 dev eth1] }
  links:
    - endpoints: [leaf:e1-49, router:eth1]
    - endpoints: [leaf:e1-1, h1:eth1]
    - endpoints: [leaf:e1-2, h2:eth1]
    - endpoints: [router:eth2, frr:eth1]
`

testWith(browser)(
  'a topology is never refused whole: the result says what each node lacks, and how to mend it',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    await page.getByText('No labs yet').waitFor()
    await page
      .locator('input[type=file]')
      .first()
      .setInputFiles([file('dc.clab.yml', fabric), file('vtysh.conf', '')])
    const dialog = page.getByRole('dialog', { name: 'Import' })
    await dialog.getByText('2 of 5 nodes can run').waitFor()
    const row = (name: string) => dialog.locator('.node-row').filter({ has: page.getByText(name, { exact: true }) })
    await row('leaf').getByText('It is a container of its vendor').waitFor()
    await row('frr').getByText('patchbay images pull quay.io/frrouting/frr:9.1.0').waitFor()
    await row('h1').getByText('can run').waitFor()
    // Losses are told apart, by the lines of the user's own file.
    const losses = (title: string) => dialog.getByRole('group').filter({ hasText: title })
    await losses('Changed').getByText('line 6:25').waitFor()
    await losses('Left out').getByText('topology.nodes.leaf.license').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])

    // A switch has ports for all links of the leaf.
    await dialog.getByLabel('Replace leaf by').selectOption({ label: 'Switch' })
    await row('leaf').getByText('replaced by Switch').waitFor()
    await dialog.getByText('3 of 5 nodes can run').waitFor()
    await losses('Left out').getByText('the node could not run when this was read').first().waitFor()
    // Reasons are below each other, also in rows without buttons.
    const lefts = await dialog
      .locator('.node-row-text')
      .evaluateAll((all) => all.map((it) => it.getBoundingClientRect().x))
    expect(new Set(lefts).size).toBe(1)
    // The image gets the name that the lab has for it.
    await dialog
      .getByLabel('Upload vyosnetworks_vyos-1.4.qcow2 for router')
      .setInputFiles([file('my vyos.qcow2', 'QFI\u00fb and so on')])
    await row('router').getByText('image uploaded').waitFor()
    await dialog.getByText('4 of 5 nodes can run').waitFor()

    await page.keyboard.press('Tab')
    await dialog.getByRole('button', { name: 'Open the lab' }).press('Enter')
    for (const name of ['leaf', 'router', 'frr', 'h1', 'h2']) await lab.node(name).waitFor()
    for (const [from, to] of [
      ['leaf', 'router'],
      ['leaf', 'h1'],
      ['leaf', 'h2'],
      ['router', 'frr'],
    ] as const)
      await lab.link(from, to).waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Start all' }).click()
    await lab.node('h1', ', pc, running').waitFor()
    await lab.node('h2', ', pc, running').waitFor()
    expect(lab.faults.filter((it) => !/status of 4\d\d/.test(it))).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'a node of an archive that cannot run is replaced, with its name and its link',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const lab = await LabPage.open(service.url)
    const { page } = lab
    const [box, pc] = [randomUUID(), randomUUID()]
    const nodes = [
      { node_id: box, name: 'web', node_type: 'traceng', x: 200, y: 0, properties: {} },
      { node_id: pc, name: 'PC1', node_type: 'vpcs', x: -200, y: 0 },
    ]
    const ends = [box, pc].map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 }))
    const links = [{ link_id: randomUUID(), nodes: ends, filters: {} }]
    const topology = { nodes, links, drawings: [], computes: [] }
    const project = JSON.stringify({ name: 'boxes', revision: 9, type: 'topology', topology })
    const archive = zipOf([{ name: 'project.gns3', data: project }])
    await page
      .locator('input[type=file]')
      .first()
      .setInputFiles([file('boxes.gns3project', archive)])
    const dialog = page.getByRole('dialog', { name: 'Import' })
    await dialog.getByText('1 of 2 nodes can run').waitFor()
    await dialog.getByText('There is no kind traceng here').waitFor()
    await dialog.getByLabel('Replace web by').selectOption({ label: 'PC' })
    await dialog.getByText('All 2 nodes can run').waitFor()
    await dialog.getByRole('button', { name: 'Open the lab' }).click()
    await lab.node('web', ', pc').waitFor()
    await lab.link('web', 'PC1').waitFor({ state: 'attached' })
  },
  120_000,
)
