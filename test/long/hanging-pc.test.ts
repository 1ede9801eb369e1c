import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { hangingProgram } from '../support/hanging-program.ts'
import { createLab, createPc, openConsole, start, status } from '../support/lab.ts'
import { TestService } from '../support/service.ts'

const settings = { 'pc.engine': 'embedded' }
let program = ''

beforeAll(async () => {
  program = await hangingProgram()
})

test('a pc that hangs ends alone, and the others of its process answer pings afterwards', async () => {
  const service = await TestService.startProgram(program, settings)
  const { project, pc1, pc2 } = await createLab(service)
  const pc3 = await createPc(service, project, 3)
  await start(service, pc1, pc2, pc3)
  const [pings, neighbour, hanging] = await Promise.all([pc1, pc2, pc3].map((node) => openConsole(service, node)))
  pings?.type('ping 10.0.0.2 -c 100000 -i 20\r')
  await pings?.expect('icmp_seq=10 ')

  hanging?.type('hang loop\r')
  await hanging?.expect('This pc was ended: its simulation hung')
  await hanging?.closed()
  await expect.poll(() => status(service, pc3)).toBe('stopped')

  // The command that ran on another pc goes on, and its console missed no line of it.
  const shown = await pings?.expect(/icmp_seq=\d+ /)
  const first = Number(/icmp_seq=(\d+) /.exec(shown ?? '')?.[1])
  const more = await pings?.expect(`icmp_seq=${first + 300} `)
  const numbers = [...(more ?? '').matchAll(/icmp_seq=(\d+) /g)].map(([, number]) => Number(number))
  expect(numbers).toEqual(Array.from({ length: 300 }, (_, index) => first + 1 + index))
  // The one that was under way when the thread hung.
  expect((more?.match(/timeout/g) ?? []).length).toBeLessThanOrEqual(1)
  neighbour?.type('show ip\r')
  await neighbour?.expect('10.0.0.2/24')
  expect(await Promise.all([pc1, pc2].map((node) => status(service, node)))).toEqual(['started', 'started'])
})

test('the hang of a pc is reported in its status, in an event and in the log of the keeper, and the pc starts again', async () => {
  const service = await TestService.startProgram(program, settings)
  const { project, pc1 } = await createLab(service)
  await start(service, pc1)
  const feed = await service.fetch(`${project}/notifications`)
  const console = await openConsole(service, pc1)
  console.type('hang loop\r')
  await console.closed()

  const reason = /^The program ended by itself \(exit code 1\): .*This pc was ended: its simulation hung \(1000 ms/
  await expect
    .poll(() => service.call('GET', pc1))
    .toMatchObject({ status: 'stopped', status_reason: expect.stringMatching(reason) })
  const errors = lines(feed, (line) => line.includes('"log.error"'))
  expect((await errors.next()).value).toMatch(/PC1: the program ended by itself .*its simulation hung/)
  // Where it hung is for those who look for the bug.
  const log = await readFile(join(service.data, 'run/keeper.log'), 'utf8')
  expect(log).toMatch(/embedded pc \d+ was ended: its simulation hung .*\n +at .*loop/)

  await start(service, pc1)
  expect(await service.call('GET', pc1)).toMatchObject({ status: 'started', status_reason: null })
  const again = await openConsole(service, pc1)
  again.type('echo here\r')
  await again.expect('\nhere\r')
})

test('only this pc ends, wherever its simulation hangs, also when it throws', async () => {
  const service = await TestService.startProgram(program, settings)
  const { pc1, pc2 } = await createLab(service)
  await start(service, pc2)
  const other = await openConsole(service, pc2)
  for (const way of ['timer', 'promises', 'packet 10.0.0.2', 'expression', 'print', 'close', 'throw']) {
    await start(service, pc1)
    const console = await openConsole(service, pc1)
    console.type(`hang ${way}\r`)
    await console.expect('This pc was ended: its simulation ')
    await expect.poll(() => status(service, pc1)).toBe('stopped')
    other.type(`echo after ${way}\r`)
    await other.expect(`\nafter ${way}\r`)
  }
})

/** Lines of a feed that pass. */
async function* lines(feed: Response, passes: (line: string) => boolean): AsyncGenerator<string> {
  let pending = ''
  for await (const text of feed.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const all = (pending + text).split('\n')
    pending = all.pop() ?? ''
    yield* all.filter(passes)
  }
}
