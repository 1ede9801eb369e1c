import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { createLab, openConsole, start, startPcs, status } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const vpcs = requireProgram('vpcs')
for (const engine of ['embedded', 'vpcs']) {
  const it = testWith(engine === 'vpcs' && vpcs)

  it(`a service killed with -9 does not disturb ${engine} pcs, and the next one adopts them`, async () => {
    const service = await TestService.start({ 'pc.engine': engine })
    const lab = await createLab(service)
    const console = await startPcs(service, lab)
    const before = await service.call('GET', lab.pc1)
    console.type('ping 10.0.0.2 -c 1000 -i 20\r')
    await console.expect('icmp_seq=3 ')

    await service.kill('SIGKILL')
    await console.expect('icmp_seq=20 ')
    await service.restart()

    expect(await service.call('GET', lab.pc1)).toEqual(before)
    expect(await status(service, lab.pc2)).toBe('started')
    // The console that was open all the time missed nothing: every number is there, in order.
    const shown = await console.expect('icmp_seq=50 ')
    const numbers = [...shown.matchAll(/icmp_seq=(\d+) /g)].map((match) => Number(match[1]))
    expect(numbers).toEqual(Array.from({ length: 30 }, (_, index) => index + 21))
    expect(shown).not.toContain('timeout')

    await service.call('POST', `${lab.pc1}/stop`)
    await console.closed()
    expect(await status(service, lab.pc1)).toBe('stopped')
    await start(service, lab.pc1)
    const again = await openConsole(service, lab.pc1)
    again.type('ping 10.0.0.2 -c 1\r')
    await again.expect('icmp_seq=1 ttl=64')
  })

  it(`after kill -9 of a keeper, ${engine} pcs are reported as stopped, and can be started again`, async () => {
    const service = await TestService.start({ 'pc.engine': engine })
    const lab = await createLab(service)
    await start(service, lab.pc1, lab.pc2)
    const feed = await openFeed(service, lab.project)
    const [keeper, ...children] = await keeperAndChildren(service.data)
    expect(children.length).toBeGreaterThan(0)
    process.kill(keeper ?? 0, 'SIGKILL')
    await feed.until((event) => event.action === 'log.error')
    await feed.until((event) => event.action === 'node.updated' && event.event.status === 'stopped')
    await expect.poll(() => status(service, lab.pc1)).toBe('stopped')
    await expect.poll(() => status(service, lab.pc2)).toBe('stopped')
    for (const child of children) expect(await state(child)).toMatch(/gone|Z/)
    const console = await startPcs(service, lab)
    console.type('ping 10.0.0.2 -c 1\r')
    await console.expect('icmp_seq=1 ttl=64')
  })

  it(`after kill -9 of service and keeper, no program of ${engine} pcs is left`, async () => {
    const service = await TestService.start({ 'pc.engine': engine })
    const lab = await createLab(service)
    await start(service, lab.pc1, lab.pc2)
    const [keeper, ...children] = await keeperAndChildren(service.data)
    await service.kill('SIGKILL')
    process.kill(keeper ?? 0, 'SIGKILL')
    await service.restart()
    expect(await status(service, lab.pc1)).toBe('stopped')
    for (const child of children) expect(await state(child)).toMatch(/gone|Z/)
    const console = await startPcs(service, lab)
    console.type('ping 10.0.0.2 -c 1\r')
    await console.expect('icmp_seq=1 ttl=64')
  })
}

test('SIGTERM stops the nodes and the keeper; the next service has the lab', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await createLab(service)
  await start(service, lab.pc1)
  const processes = await keeperAndChildren(service.data)
  await service.end()
  for (const pid of processes) await expect.poll(() => state(pid)).toMatch(/gone|Z/)
  await service.restart()
  expect(await status(service, lab.pc1)).toBe('stopped')
})

test('a service that ends as soon as it is ready stops the nodes that the one before it left', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await createLab(service)
  await start(service, lab.pc1, lab.pc2)
  const processes = await keeperAndChildren(service.data)
  await service.kill('SIGKILL')
  await service.restart()
  await service.end()
  for (const pid of processes) await expect.poll(() => state(pid)).toMatch(/gone|Z/)
})

test('with on_exit = "keep" SIGTERM leaves the nodes running', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', on_exit: 'keep' })
  const lab = await createLab(service)
  const console = await startPcs(service, lab)
  await service.end()
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
  await service.configure({ 'pc.engine': 'embedded' })
  await service.restart()
  expect(await status(service, lab.pc1)).toBe('started')
})

/** Pids of the keeper of this data directory, first, and of everything below it. */
async function keeperAndChildren(data: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const processes = await Promise.all(
    pids.map(async (pid) => ({
      pid,
      command: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
      parent: Number(/\) \S (\d+)/.exec(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''))?.[1]),
    })),
  )
  const keeper = processes.find(({ command }) => command.includes(data) && /keeper/.test(command.replace(data, '')))
  if (keeper === undefined) throw new Error('no keeper')
  const below = (parent: number): number[] =>
    processes.filter((it) => it.parent === parent).flatMap(({ pid }) => [pid, ...below(pid)])
  return [keeper.pid, ...below(keeper.pid)]
}

async function state(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return stat === undefined ? 'gone' : (/\) (\S)/.exec(stat)?.[1] ?? '')
}

interface FeedEvent {
  readonly action: string
  readonly event: { readonly status?: string }
}

/** A v2 feed of the project; `until` reads on to the first event that passes. */
async function openFeed(service: TestService, project: string) {
  const answer = await service.fetch(`${project}/notifications`, { signal: AbortSignal.timeout(hangMs) })
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let pending = ''
  return {
    async until(passes: (event: FeedEvent) => boolean): Promise<FeedEvent> {
      for (;;) {
        const end = pending.indexOf('\n')
        if (end < 0) {
          const { value, done } = (await reader?.read()) ?? { value: '', done: true }
          if (done) throw new Error('the feed ended')
          pending += value
          continue
        }
        const event = JSON.parse(pending.slice(0, end)) as FeedEvent
        pending = pending.slice(end + 1)
        if (passes(event)) return event
      }
    },
  }
}
