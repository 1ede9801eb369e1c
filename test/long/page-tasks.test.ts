import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import type { LabPlan } from '../../src/client/patchbay.ts'
import { accessibilityFaults } from '../support/accessibility.ts'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const repair = await readFile('examples/repair/repair.lab.yaml', 'utf8')
const [user, password] = ['teacher', 'geheim-geheim']
const teacher = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** Makes a lab of a file, and waits until it runs. */
async function madeLab(service: TestService, document: string, authorization?: string): Promise<void> {
  const name = /^lab: (\S+)/m.exec(document)?.[1]
  const headers = { ...(authorization && { authorization }), 'content-type': 'application/yaml' }
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await service.fetch(path, { ...init, headers })
    expect(answer.ok, path).toBe(true)
    return answer.json()
  }
  const put = { method: 'PUT', body: document }
  const { job_id } = (await ask(`/v2/projects/${name}/topology?start=true`, put)) as LabPlan
  if (job_id === undefined) return
  await expect
    .poll(async () => ((await ask(`/v2/jobs/${job_id}`)) as { status: string }).status, { timeout: 60_000 })
    .toBe('done')
}

testWith(browser)(
  'somebody who learns repairs a lab by its tasks, and sees what is done and nothing that solves them',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded', user, password })
    await madeLab(service, repair, teacher)
    const made = await service.fetch('/v2/tokens', {
      method: 'POST',
      headers: { authorization: teacher },
      body: JSON.stringify({ name: 'ada', role: 'operate', projects: ['repair'] }),
    })
    const { token } = (await made.json()) as { token: string }
    const lab = await LabPage.open(service.url, '/', { viewport: { width: 1440, height: 900 } })
    await lab.signIn(token)
    const { page } = lab
    const answers: Promise<string>[] = []
    page.on('response', (response) => {
      if (/\/v2\/(projects|jobs)/.test(response.url()) && !response.url().includes('notifications'))
        answers.push(response.text().catch(() => ''))
    })
    await page.goto(`${service.url}/#/labs/repair`)
    const pane = page.getByRole('complementary', { name: 'Tasks' })
    await pane.getByText('0 of 5 points').waitFor()
    await expect.poll(() => pane.getByRole('listitem').count()).toBe(4)
    await pane.getByText('192.168.7.0/24').waitFor()
    expect(await pane.locator('strong').innerText()).toBe('192.168.7.0/24')

    await pane.getByRole('button', { name: 'Check' }).click()
    await pane.getByText('checked at').waitFor({ timeout: 60_000 })
    expect(await pane.locator('.task-state').allInnerTexts()).toEqual([
      ...['It does not work yet.', 'It does not work yet.', '0 of 3 parts work.'],
    ])

    // The riser is plugged in again, as somebody does who has found it.
    await lab.link('closet1', 'closet2').focus()
    await page.getByRole('complementary', { name: /^Link/ }).getByRole('button', { name: 'Resume' }).click()
    await pane.getByRole('button', { name: 'Check' }).click()
    await pane.getByText('1 of 5 points').waitFor({ timeout: 60_000 })
    await expect.poll(() => pane.locator('.task.is-done').innerText()).toContain('The riser')
    await page.getByRole('button', { name: 'Show or hide the tasks' }).getByText('Tasks 1/5').waitFor()

    // A page that is opened later shows the same.
    await page.reload()
    await pane.getByText('1 of 5 points').waitFor()
    const seen = (await Promise.all(answers)).join('\n')
    expect(seen).toContain('The riser')
    expect(seen).not.toMatch(/FLOOR2 reaches the printer"|the riser is up|"ping"/)
    expect(lab.faults).toEqual([])
  },
  180_000,
)

const hostile = `lab: hostile
nodes: { PC1: { kind: pc } }
tasks:
  - name: "<img src=x onerror=alert(1)>"
    text: |
      <script>alert(1)</script> <b>bold</b> ![picture](https://example.org/x.png)
      [leads nowhere](javascript:alert%281%29) [leads out](https://example.org/a_b_c)
  - { name: تمرين ١, text: "**اقرأ** هذا" }
  - { name: ${'long '.repeat(50)}end, text: "${'word'.repeat(400)}" }
`

testWith(browser)(
  'names and texts of others are shown as text: they run nothing, load nothing, and stay in the pane',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await madeLab(service, hostile)
    const lab = await LabPage.open(service.url, '/#/labs/hostile')
    const { page } = lab
    const pane = page.getByRole('complementary', { name: 'Tasks' })
    await pane.getByText('<img src=x onerror=alert(1)>').waitFor()
    await pane.getByText('<script>alert(1)</script> <b>bold</b> picture').waitFor()
    const links = pane.getByRole('link')
    expect(await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')))).toEqual([
      'https://example.org/a_b_c',
    ])
    expect(await pane.locator('img, script, b').count()).toBe(0)
    expect(
      await pane
        .locator('.markdown')
        .nth(1)
        .evaluate((text) => getComputedStyle(text).direction),
    ).toBe('rtl')
    expect(await pane.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true)
    // They are only read.
    expect(await pane.getByRole('button', { name: 'Check' }).count()).toBe(0)
    expect(lab.faults).toEqual([])
  },
  120_000,
)

testWith(browser)(
  'the tasks are reached by keyboard, and are legible at every width and in both themes',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    await madeLab(service, repair)
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1440, 800, 390]) {
        const lab = await LabPage.open(service.url, '/#/labs/repair', { viewport: { width, height: 844 }, colorScheme })
        const { page } = lab
        await lab.node('FLOOR1').waitFor({ state: 'attached' })
        const pane = page.getByRole('complementary', { name: 'Tasks' })
        // On a phone the map comes first.
        if (width > 760) await pane.waitFor()
        else expect(await pane.count()).toBe(0)
        await page.getByRole('application').focus()
        if (width > 760) await page.keyboard.press('k')
        await expect.poll(() => pane.count()).toBe(0)
        await page.keyboard.press('k')
        await pane.getByText('192.168.7.0/24').waitFor()
        // Two more keys start a check.
        await page.keyboard.press('Tab')
        await page.keyboard.press('Tab')
        expect(await page.evaluate('document.activeElement.innerText')).toContain('Check')
        expect(await accessibilityFaults(page)).toEqual([])
        await page.getByRole('button', { name: 'Close the tasks' }).click()
        await expect.poll(() => pane.count()).toBe(0)
        expect(lab.faults).toEqual([])
        await page.close()
      }
  },
  240_000,
)
