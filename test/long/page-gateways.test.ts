import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { firstLab } from '../support/first-lab.ts'
import { keyboardLab } from '../support/keyboard-lab.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { MachineScreen, waitingMachine } from '../support/machine-screen.ts'
import { phone, phoneLab } from '../support/phone-lab.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const browser = requireChromium()
const qemu = requireProgram('qemu-system-x86_64')
const joinToken = 'page-test-0123456789'

/** Starts a compute that dials a gateway; its id. */
async function joined(url: string, token: string): Promise<string> {
  const compute = await TestService.startForAll({ 'pc.engine': 'embedded', 'join.url': url, 'join.token': token })
  ended.push(() => compute.close())
  return (await readFile(join(compute.data, 'compute-id'), 'utf8')).trim()
}

/** What ends with the tests, the last first. */
const ended: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const end of ended.reverse()) await end()
})

/** A gateway on Node with two computes that have joined it. */
let node: { readonly gateway: TestService; readonly ids: readonly [string, string] }
/** The Worker, with one. */
let worker: { readonly gateway: WorkerGateway; readonly id: string }

beforeAll(async () => {
  if (browser.skip) return
  const tokens = [joinToken, `${joinToken}-2`] as const
  const gateway = await TestService.startForAll({ gateway: true, 'fleet.join_tokens': tokens })
  ended.push(() => gateway.close())
  const ids = [await joined(gateway.url, tokens[0]), await joined(gateway.url, tokens[1])] as const
  const connected = async () => {
    const all = (await gateway.call<Compute[]>('GET', '/v2/computes')).filter((it) => it.connected)
    expect(all.map((it) => it.compute_id)).toEqual(expect.arrayContaining([...ids]))
  }
  await vi.waitFor(connected, { timeout: hangMs })
  node = { gateway, ids }

  const data = await mkdtemp(join(tmpdir(), 'patchbay-'))
  ended.push(() => rm(data, { recursive: true, force: true }))
  const edge = await WorkerGateway.startForAll(data)
  ended.push(() => edge.stop())
  const { token } = await edge.call<{ token: string }>('POST', '/v2/tokens', { name: 'far', purpose: 'join' })
  const id = await joined(edge.url.replace('http', 'ws'), token)
  await edge.untilConnected(id)
  worker = { gateway: edge, id }
})

/** Tests leave their labs behind. */
afterEach(async () => {
  if (browser.skip) return
  for (const { gateway } of [node, worker])
    for (const { project_id } of await gateway.call<{ project_id: string }[]>('GET', '/v2/projects'))
      await gateway.call('DELETE', `/v2/projects/${project_id}`)
})

testWith(browser)(
  'a lab is made by the keyboard alone at the Worker, and another window follows it',
  async () => {
    const { gateway } = worker
    await gateway.call('POST', '/v2/projects', { name: 'Keys' })
    const open = async () => {
      const lab = await LabPage.open(gateway.url)
      await lab.signIn(adminToken)
      await lab.page.goto(`${gateway.url}/#/labs/Keys`)
      return lab
    }
    const [other, lab] = [await open(), await open()]
    await keyboardLab(lab, other)
    expect([...lab.faults, ...other.faults]).toEqual([])
  },
  300_000,
)

testWith(browser)(
  'a lab is made by fingers on a phone at the Worker',
  async () => {
    const lab = await LabPage.open(worker.gateway.url, '/', phone)
    await lab.signIn(adminToken)
    await phoneLab(lab)
    expect(lab.faults).toEqual([])
  },
  300_000,
)

testWith(browser)(
  'a first lab on a wide screen at a gateway on Node, on a compute that has joined it',
  async () => {
    const lab = await LabPage.open(node.gateway.url, '/', { viewport: { width: 1600, height: 900 } })
    await firstLab(lab)
    expect(lab.faults).toEqual([])
  },
  240_000,
)

testWith(browser)(
  'a first lab at the Worker, on a compute that has joined it',
  async () => {
    const lab = await LabPage.open(worker.gateway.url)
    await lab.signIn(adminToken)
    await firstLab(lab)
    expect(lab.faults).toEqual([])
  },
  240_000,
)

testWith(browser)(
  'a drain of a compute says what will move, what has moved and what stays, and is undone',
  async () => {
    const {
      gateway,
      ids: [compute_id],
    } = node
    const { name: compute } = await gateway.call<Compute>('PUT', `/v2/computes/${compute_id}`, { name: 'Room 1' })
    for (const name of ['Idle', 'Busy']) {
      const { project_id } = await gateway.call<{ project_id: string }>('POST', '/v2/projects', { name, compute_id })
      const node = { name: 'PC1', node_type: 'pc', compute_id }
      await gateway.call('POST', `/v2/projects/${project_id}/nodes`, node)
      if (name === 'Busy') await gateway.call('POST', `/v2/projects/${project_id}/nodes/start`)
    }
    const { page, faults } = await LabPage.open(gateway.url, '/#/computes')
    const card = page.getByRole('listitem').filter({ hasText: compute })
    await card.getByRole('button', { name: 'Drain …' }).click()
    const dialog = page.getByRole('dialog', { name: 'Drain the compute?' })
    await dialog.getByText('1 lab (Idle) will move').waitFor()
    await dialog.getByText('1 lab (Busy) will stay: nodes are running').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
    await card.getByRole('status').getByText('1 of 2 labs moved').waitFor()
    await card.getByText(/^Busy: stays, /).waitFor()
    await card.getByText('accepts no new labs').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await card.getByRole('button', { name: 'Accept labs again' }).click()
    await card.getByText('accepts no new labs').waitFor({ state: 'detached' })
    await card.getByRole('status').waitFor({ state: 'detached' })
    expect(faults).toEqual([])
  },
  240_000,
)

type Call = (method: string, path: string, body?: unknown) => Promise<unknown>

/** The screen of a machine at a gateway takes keys, also after a restart, and its files come and go. */
async function screenAndFiles(lab: LabPage, call: Call, compute_id: string): Promise<void> {
  const { page } = lab
  const { project_id } = (await call('POST', '/v2/projects', { name: 'Far' })) as { project_id: string }
  const nodes = `/v2/projects/${project_id}/nodes`
  await call('POST', nodes, { name: 'M1', compute_id, ...waitingMachine })
  await call('POST', `${nodes}/start`)
  await page.getByRole('link', { name: 'Far' }).click()
  await lab.node('M1', ', machine-emulator, running').dblclick()
  const screen = new MachineScreen(page, 'M1')
  await screen.canvas.waitFor()
  const waiting = await screen.settled()
  await page.keyboard.press('Escape')
  await screen.changesFrom(waiting)

  await page.getByText('Files', { exact: true }).click()
  const files = page.getByRole('list', { name: 'Files of M1' })
  // More than one piece of a stream over a tunnel.
  const bytes = randomBytes(3 << 20)
  await page.getByLabel('Files to add').setInputFiles({ name: 'notes & disk.bin', mimeType: '', buffer: bytes })
  const saving = page.waitForEvent('download')
  await files.getByText('notes & disk.bin').click()
  const saved = await saving
  expect(saved.suggestedFilename()).toBe('notes & disk.bin')
  expect((await readFile(await saved.path())).equals(bytes)).toBe(true)

  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await page.getByText('M1 is not running. Start it to see its screen.').waitFor()
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await screen.canvas.waitFor()
  const again = await screen.settled()
  await page.keyboard.press('Escape')
  await screen.changesFrom(again)
  expect(lab.faults).toEqual([])
}

testWith(browser, qemu)(
  'the screen and the files of a machine at a gateway on Node, on a compute that has joined it',
  async () => {
    const { gateway, ids } = node
    const lab = await LabPage.open(gateway.url)
    await screenAndFiles(lab, (...call) => gateway.call(...call), ids[0])
  },
  240_000,
)

testWith(browser, qemu)(
  'the screen and the files of a machine at the Worker, on a compute that has joined it',
  async () => {
    const { gateway, id } = worker
    const lab = await LabPage.open(gateway.url)
    await lab.signIn(adminToken)
    await screenAndFiles(lab, (...call) => gateway.call(...call), id)
  },
  240_000,
)

testWith(browser)(
  'an example, and one whose images are missing, at a gateway on Node and at the Worker',
  async () => {
    for (const { gateway } of [node, worker]) {
      const lab = await LabPage.open(gateway.url)
      const { page } = lab
      if (gateway instanceof WorkerGateway) await lab.signIn(adminToken)
      await page.getByRole('button', { name: /^OSPF/ }).click()
      const dialog = page.getByRole('dialog', { name: 'Import' })
      await dialog.getByText('2 of 5 nodes can run').waitFor()
      await dialog.getByLabel('Replace R3 by').selectOption({ label: 'Switch' })
      await dialog.getByText('replaced by Switch').waitFor()
      await dialog.getByRole('button', { name: 'Open the lab' }).click()
      await lab.link('R1', 'R3').waitFor({ state: 'attached' })
      await gateway.call('DELETE', '/v2/projects/ospf')
      await page.goto(`${gateway.url}/#/`)
      await page.getByRole('button', { name: /^Two PCs/ }).click()
      await lab.link('PC1', 'PC2').waitFor({ state: 'attached' })
      await page.getByRole('button', { name: 'Start all' }).click()
      await lab.node('PC1', ', pc, running').waitFor()
      await page.goto(`${gateway.url}/#/`)
      await page.getByRole('listitem').filter({ hasText: 'two-pcs' }).locator('.thumbnail img').waitFor()
    }
  },
  240_000,
)
