import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { requireChromium } from '../support/chromium.ts'
import { LabPage } from '../support/lab-page.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const pings = 200

/** Two PCs with addresses on one cable, which run. */
async function runningLab(service: TestService): Promise<void> {
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/projects', { name: 'Crash' })
  const lab = `/v2/projects/${project_id}`
  const nodes: object[] = []
  for (const number of [1, 2]) {
    const properties = { startup_script: `ip 10.0.0.${number}/24` }
    const body = { name: `PC${number}`, node_type: 'pc', compute_id: 'local', x: number * 200, properties }
    const { node_id } = await service.call<{ node_id: string }>('POST', `${lab}/nodes`, body)
    nodes.push({ node_id, adapter_number: 0, port_number: 0 })
  }
  await service.call('POST', `${lab}/links`, { nodes })
  await service.call('POST', `${lab}/nodes/start`)
}

testWith(browser)(
  'after kill -9 of the service in the middle of an edit the page connects again, has every byte of a console, and told of the edit',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const port = Number(new URL(service.url).port)
    await runningLab(service)
    const lab = await LabPage.open(service.url, '/#/labs/Crash')
    const { page } = lab
    const place = () => lab.node('PC1').getAttribute('transform')
    await lab.node('PC1', ', pc, running').waitFor()
    const input = await lab.openConsole('PC1')
    await lab.shows('PC1>')
    await input.pressSequentially(`ping 10.0.0.2 -c ${pings} -i 25\r`)
    await lab.shows('icmp_seq=2 ')

    // A service that does not answer has the edit, or has not: the page cannot know.
    const before = await place()
    process.kill(service.pid, 'SIGSTOP')
    await lab.node('PC1').focus()
    const sent = page.waitForRequest((it) => it.method() === 'PUT')
    await page.keyboard.press('ArrowLeft')
    await sent
    await service.kill('SIGKILL')
    await page.getByText('Connection lost. Trying again').waitFor()
    await page.locator('.toast.is-error', { hasText: 'cannot be reached' }).waitFor()
    await page.getByRole('button', { name: 'Close this message' }).click()
    // An edit without a service is refused, and the map shows what is.
    await page.keyboard.press('ArrowUp')
    await page.locator('.toast.is-error', { hasText: 'cannot be reached' }).waitFor()
    await expect.poll(place, { timeout: hangMs }).toBe(before)
    // What is typed meanwhile waits.
    await page.getByText('Connecting …').waitFor()
    await input.pressSequentially('show ip\r')

    await service.restart(port)
    await page.getByText('Live', { exact: true }).waitFor()
    await lab.shows('GATEWAY')
    const [log] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save what the console shows' }).click(),
    ])
    const text = await readFile(await log.path(), 'utf8')
    const numbers = [...text.matchAll(/icmp_seq=(\d+) ttl=64/g)].map(([, number]) => Number(number))
    expect(numbers).toEqual(Array.from({ length: pings }, (_, index) => index + 1))

    await lab.node('PC1').focus()
    await page.keyboard.press('ArrowLeft')
    await expect
      .poll(() => service.call('GET', '/v2/projects/Crash/nodes/PC1'), { timeout: hangMs })
      .toMatchObject({ x: 180 })
    expect(await place()).toBe('translate(180 0)')
    expect(lab.faults.filter((it) => !/ERR_|WebSocket connection/.test(it))).toEqual([])
  },
  240_000,
)
