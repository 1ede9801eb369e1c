import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { ClassLink, LabJob, LabNode, LabProject } from '../../src/client/patchbay.ts'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const token = 'teacher-of-tests-0123456789'

/** A request of the teacher. */
async function ask<T>(service: TestService, method: string, path: string, body?: unknown): Promise<T> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await service.fetch(path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}

/** A lab of two pcs, to be copied. */
async function prepare(service: TestService): Promise<void> {
  await ask(service, 'POST', '/v2/projects', { name: 'First ping' })
  for (const [index, name] of ['PC1', 'PC2'].entries())
    await ask(service, 'POST', '/v2/projects/First ping/nodes', { name, node_type: 'pc', x: index * 200, y: 0 })
}

const faults: string[] = []
/** Looks for what axe finds, and for what is wider than the screen, in each width and both themes. */
async function look(page: Page, screen: string): Promise<void> {
  for (const width of [390, 800, 1440]) {
    await page.setViewportSize({ width, height: 900 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const found = await accessibilityFaults(page, { isRecoloured: colorScheme === 'dark' })
      faults.push(...found.map((it) => `${screen} ${width} ${colorScheme}: ${it}`))
    }
    const excess = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    if (Number(excess) > 0) faults.push(`${screen} ${width}: ${excess} px too wide`)
  }
}

testWith(browser)(
  'a teacher makes a class by one form, a student gets into the lab by a link, and the wall shows it',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', token })
    await prepare(service)
    await ask(service, 'POST', '/v2/projects/First ping/nodes/start')
    const teacher = await LabPage.open(service.url)
    const { page } = teacher
    await teacher.signIn(token)
    await page.getByRole('link', { name: 'Classes' }).click()
    await page.getByText('A class gives each student a copy').waitFor()
    await look(page, 'no classes')

    await page.getByRole('button', { name: 'New class' }).click()
    await page.getByLabel('Name of the class').fill('net')
    await page.getByLabel('Students').fill('Ada, Grace\tada\nAlan')
    await page.getByText('3 students. Twice in the list: Ada.').waitFor()
    await page.getByLabel('Each gets a copy of the lab').selectOption('First ping')
    await page.getByText('2 nodes of it running: stopped first.').waitFor()
    await page.getByLabel('The link ends after').selectOption('never')
    await page.getByLabel('The link ends after').selectOption('1 week')
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('Running at most').fill('4')
    await look(page, 'form')
    const sent: string[] = []
    page.on('request', (it) => it.method() === 'POST' && sent.push(new URL(it.url()).pathname))
    // Pressed twice before the first press has done anything.
    await page.evaluate(`for (let n = 0; n < 2; n++) document.querySelector('.class-form button.is-main').click()`)

    const dialog = page.getByRole('dialog', { name: 'Links of the class net' })
    await dialog.waitFor()
    const links = await dialog.locator('code').allInnerTexts()
    expect(sent.filter((it) => it === '/v2/classes')).toHaveLength(1)
    expect(links).toEqual(Array(3).fill(expect.stringContaining(`${service.url}/#/class/pb_`)))
    await look(page, 'links')
    const download = page.waitForEvent('download')
    await dialog.getByRole('button', { name: 'CSV' }).click()
    expect((await download).suggestedFilename()).toBe('net.csv')
    await page.emulateMedia({ media: 'print', colorScheme: 'light' })
    const printed = await page.evaluate('document.body.innerText')
    expect(String(printed).trim().split(/\s+/)).toEqual([
      ...['Links', 'of', 'the', 'class', 'net', 'Ada', links[0], 'Alan', links[1], 'Grace', links[2]],
    ])
    await page.emulateMedia({ media: 'screen' })
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('0 of 3 students there').waitFor()
    await page.getByText('Each student: at most 4 running.').waitFor()
    const card = (name: string) => page.getByRole('listitem').filter({ hasText: name })
    await card('Ada').getByText('0 of 2 running').waitFor()

    const student = await LabPage.open(service.url, `/${new URL(links[0] ?? '').hash}`)
    await student.node('PC1').waitFor()
    expect(student.page.url()).toBe(`${service.url}/#/labs/net-Ada`)
    expect(await student.page.title()).toBe('net-Ada – Patchbay')
    await card('Ada').getByText('is there').waitFor()
    await page.getByText('1 of 3 students there').waitFor()
    await student.page.getByRole('button', { name: /^Start all/ }).click()
    await card('Ada').getByText('2 of 2 running').waitFor()
    await card('Ada')
      .getByText(/PC\d started/)
      .waitFor()
    await look(page, 'wall')
    // The map has been read again meanwhile.
    expect(await card('Ada').innerText()).toContain('2 of 2 running')
    await page.setViewportSize({ width: 1280, height: 900 })

    // The snapshot of the start is there to be restored, and not to be deleted.
    await student.page.getByText('Start of the class').waitFor()
    await student.page.getByRole('button', { name: 'Restore' }).waitFor()
    expect(await student.page.getByRole('button', { name: 'Delete Start of the class' }).count()).toBe(0)
    // From a lab of the wall the way back is to the wall.
    await page.getByRole('link', { name: 'Ada', exact: true }).click()
    await page.getByRole('link', { name: 'Back to the class' }).click()
    await card('Ada').getByText('2 of 2 running').waitFor()
    // In the list of labs they are one line, until they are searched.
    await page.getByRole('link', { name: 'Labs', exact: true }).click()
    await page.getByRole('link', { name: 'First ping' }).waitFor()
    expect(await page.getByRole('link', { name: 'net-Ada' }).count()).toBe(0)
    await look(page, 'labs')
    await page.getByRole('link', { name: 'net (3 labs)' }).click()
    await card('Ada').getByText('2 of 2 running').waitFor()
    await page.setViewportSize({ width: 1280, height: 900 })
    // The student deletes a node; the teacher puts the lab back.
    await student.node('PC2').click()
    await student.page.keyboard.press('Delete')
    await card('Ada').getByText('1 of 1 running').waitFor()
    await card('Ada').getByRole('button', { name: 'Reset' }).click()
    await look(page, 'reset')
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    await Promise.all([
      page.getByText('The lab of Ada was put back to the start.').waitFor(),
      student.page.getByText('The lab was put back to “Start of the class”.').waitFor(),
    ])
    await card('Ada').getByText('0 of 2 running').waitFor()
    expect(await ask<LabNode[]>(service, 'GET', '/v2/projects/net-Ada/nodes')).toHaveLength(2)
    await student.node('PC2', ', pc, stopped').waitFor()

    // What is no student's is not offered.
    await student.page.goto(`${service.url}/#/`)
    await student.page.getByRole('link', { name: 'net-Ada' }).waitFor()
    const tabs = student.page.getByRole('navigation', { name: 'Screens' }).getByRole('link')
    expect(await tabs.allInnerTexts()).toEqual(['Labs', 'Settings'])
    for (const name of ['New lab', 'Delete net-Ada', 'Duplicate net-Ada'])
      expect(await student.page.getByRole('button', { name }).count()).toBe(0)

    // A new link ends the one before, and has the same limits.
    await card('Ada').getByRole('button', { name: 'New link' }).click()
    await expect.poll(() => page.getByLabel('The link ends after').inputValue()).toBe('1 week')
    expect(await page.getByLabel('Running at most').inputValue()).toBe('4')
    await page.getByRole('button', { name: 'Make', exact: true }).click()
    await dialog.waitFor()
    expect(await dialog.locator('code').count()).toBe(1)
    await page.getByRole('button', { name: 'Done' }).click()
    const late = await LabPage.open(service.url, `/${new URL(links[0] ?? '').hash}`)
    await late.page.getByText('This link is no longer valid. Ask your teacher for a new one.').waitFor()
    expect(late.page.url()).toBe(`${service.url}/#/`)
    await look(late.page, 'invalid link')
    // In a page whose session has ended, it signs in.
    await student.page.goto(`${service.url}/${new URL(links[1] ?? '').hash}`)
    await student.node('PC1').waitFor()
    expect(student.page.url()).toBe(`${service.url}/#/labs/net-Alan`)
    // In a page where somebody else is signed in, it asks, and the page stays as it is meanwhile.
    const question = teacher.page.getByRole('dialog', { name: 'Open this link?' })
    const openLink = (at: LabPage) => at.page.goto(`${service.url}/${new URL(links[1] ?? '').hash}`)
    await openLink(teacher)
    await question.getByText(/You are signed in as .+ Open this link and sign out/).waitFor()
    expect(page.url()).toBe(`${service.url}/#/classes/net`)
    await look(page, 'question')
    await page.setViewportSize({ width: 1280, height: 900 })
    await question.getByRole('button', { name: 'Stay' }).click()
    await card('Ada').waitFor()
    const other = await LabPage.open(service.url)
    await other.signIn(token)
    await openLink(other)
    await other.page.getByRole('button', { name: 'Open the link' }).click()
    await other.node('PC1').waitFor()
    expect(other.page.url()).toBe(`${service.url}/#/labs/net-Alan`)
    // Who opens the own link again is not asked, unless something is not saved.
    const again = other.page.waitForRequest((it) => it.method() === 'POST' && it.url().endsWith('/v2/session'))
    await openLink(other)
    await again
    await other.node('PC1').waitFor()
    await other.page.evaluate(`addEventListener('beforeunload', (event) => event.preventDefault())`)
    await openLink(other)
    await other.page.getByText('You have changes that are not saved.').waitFor()
    await other.page.getByRole('button', { name: 'Open the link' }).click()
    await other.node('PC1').waitFor()
    expect(other.page.url()).toBe(`${service.url}/#/labs/net-Alan`)

    expect([...faults, ...teacher.faults]).toEqual([])
    await page.getByRole('button', { name: 'Delete class' }).click()
    await page.getByRole('dialog').getByText('The labs of all 3 students are deleted').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No classes yet').waitFor()
    expect((await ask<LabProject[]>(service, 'GET', '/v2/projects')).map((it) => it.name)).toEqual(['First ping'])
  },
  240_000,
)

testWith(browser)(
  'at a service that asks for no credentials, a class of a lab file is made, and its links open the labs',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { page, faults } = await LabPage.open(service.url, '/#/classes')
    await page.getByRole('button', { name: 'New class' }).click()
    // What is said before the class is made.
    await page.getByText('Its links would restrict nobody').waitFor()
    const { port } = new URL(service.url)
    const line = `patchbay serve --host 0.0.0.0 --port ${port} --data ${service.data}`
    expect(await page.locator('.open-service code').innerText()).toContain(line)
    await page.getByLabel('Name of the class').fill('net')
    await page.getByLabel('Students').fill('Ada')
    const buffer = Buffer.from('lab: two\nnodes:\n  PC1: { kind: pc }\n  PC2: { kind: pc }\n')
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'or of a file' }).click()
    await (await chooser).setFiles({ name: 'two.lab.yaml', mimeType: '', buffer })
    await expect.poll(() => page.getByLabel('Each gets a copy of the lab').inputValue()).toBe('two')
    await page.getByRole('button', { name: 'Make the class' }).click()
    await page.getByText('the links open the labs and restrict nobody').waitFor()
    await page.getByText(line).waitFor()
    await page.getByLabel('Address of this computer').fill('http://teacher.example:4091/')
    await expect
      .poll(() => page.locator('.class-links td code').innerText())
      .toMatch(/^http:\/\/teacher\.example:4091\/#\/class\/pb_/)
    const [link = ''] = await page.locator('.class-links td code').allInnerTexts()
    await page.getByRole('button', { name: 'Done' }).click()
    // Who comes in another way may be anybody.
    const teacher = await LabPage.open(service.url, '/#/labs/net-Ada')
    await page.getByText('0 of 1 student there, somebody unknown in 1 lab').waitFor()
    await page.getByText('somebody is there').waitFor()
    const student = await LabPage.open(service.url, `/${new URL(link).hash}`)
    await student.node('PC1').waitFor()
    expect(student.page.url()).toBe(`${service.url}/#/labs/net-Ada`)
    await page.getByText('is there, with somebody').waitFor()
    await teacher.page.close()
    await student.page.reload()
    await page.getByText('is there', { exact: true }).waitFor()
    await page.getByText('1 of 1 student there', { exact: true }).waitFor()
    // No request was refused, as the browser would say.
    expect([...faults, ...student.faults]).toEqual([])
    const { job_id } = await service.call<LabJob>('DELETE', '/v2/classes/net')
    await expect.poll(() => service.call<LabJob>('GET', `/v2/jobs/${job_id}`)).toMatchObject({ status: 'done' })
  },
  120_000,
)

testWith(browser)(
  'a class is made of an example, and nothing that was typed before is lost',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { page } = await LabPage.open(service.url, '/#/classes')
    await page.getByRole('button', { name: 'New class' }).click()
    await page.getByLabel('Name of the class').fill('net')
    await page.getByLabel('Students').fill('Ada\nGrace')
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('Running at most').fill('4')
    await page.getByRole('button', { name: 'or of an example' }).click()
    await page.getByRole('dialog', { name: 'From an example' }).press('Escape')
    await page.getByRole('button', { name: 'or of an example' }).click()
    await page.getByRole('button', { name: /^Repair/ }).click()
    await expect.poll(() => page.getByLabel('Each gets a copy of the lab').inputValue()).toBe('repair')
    await page.getByRole('button', { name: 'Make the class' }).click()
    await page.getByRole('dialog', { name: 'Links of the class net' }).waitFor()
    expect(await service.call('GET', '/v2/classes')).toMatchObject([
      {
        name: 'net',
        students: ['Ada', 'Grace'].map((student) => ({ student, token: { limits: { max_running: 4 } } })),
      },
    ])
    const { job_id } = await service.call<LabJob>('DELETE', '/v2/classes/net')
    await expect.poll(() => service.call<LabJob>('GET', `/v2/jobs/${job_id}`)).toMatchObject({ status: 'done' })
  },
  120_000,
)

testWith(browser)(
  'the wall of twenty labs takes next to nothing while nothing happens',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', token })
    await prepare(service)
    const students = Array.from({ length: 20 }, (_, index) => `student ${index + 1}`)
    const { job_id } = await ask<LabJob>(service, 'POST', '/v2/classes', {
      name: 'net',
      project_id: 'First ping',
      students,
    })
    await expect
      .poll(() => ask<LabJob>(service, 'GET', `/v2/jobs/${job_id}`), { timeout: 60_000 })
      .toMatchObject({ status: 'done', done: 20 })
    expect(await ask<ClassLink[]>(service, 'POST', '/v2/classes/net/links', {})).toHaveLength(20)
    const teacher = await LabPage.open(service.url)
    const { page } = teacher
    await teacher.signIn(token)
    await page.goto(`${service.url}/#/classes/net`)
    await expect.poll(() => page.locator('.thumbnail img').count(), { timeout: 60_000 }).toBe(20)
    const requests: string[] = []
    page.on('request', (it) => requests.push(it.url()))
    const session = await page.context().newCDPSession(page)
    await session.send('Performance.enable')
    const busy = async () => {
      const { metrics } = await session.send('Performance.getMetrics')
      return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0
    }
    const before = await busy()
    await new Promise((resolve) => setTimeout(resolve, 10_000))
    // 2 % of a core.
    expect((await busy()) - before).toBeLessThan(0.2)
    expect(requests).toEqual([])
    expect(teacher.faults).toEqual([])
  },
  180_000,
)
