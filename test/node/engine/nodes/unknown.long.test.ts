import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, realpath } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { createLab, openConsole, start, status } from '../../../support/lab.ts'
import { TestService } from '../../../support/service.ts'
import { Terminal } from '../../../support/terminal.ts'

interface Shown {
  readonly status: string
  readonly status_reason: string | null
  readonly console: number
}

/** The keeper of a service, which can be made to hang. */
async function keeperOf(service: TestService) {
  const client = await KeeperClient.connect(service.data)
  client.disconnect()
  const signal = (name: NodeJS.Signals) => void process.kill(client.pid, name)
  onTestFinished(() => {
    try {
      signal('SIGCONT')
    } catch {
      // It has ended.
    }
  })
  return { hang: () => signal('SIGSTOP'), goOn: () => signal('SIGCONT') }
}

/** The records of the only project. */
async function records(service: TestService): Promise<string[]> {
  const [project = ''] = await readdir(join(service.data, 'projects'))
  const directory = join(service.data, 'projects', project, '.patchbay/nodes')
  const names = (await readdir(directory)).sort()
  return Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')))
}

test('a start beside a keeper that hangs soon says why, changes nothing, and works when the keeper answers', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project, pc1, pc2 } = await createLab(service)
  await start(service, pc1)
  const before = await service.call<Shown>('GET', pc1)
  const { hang, goOn } = await keeperOf(service)
  hang()
  const begun = performance.now()
  const refused = await service.fetch(`${pc2}/start`, { method: 'POST' })
  expect(performance.now() - begun).toBeLessThan(20_000)
  expect(refused.status).toBe(503)
  expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0)
  expect(await refused.json()).toMatchObject({ message: expect.stringContaining('does not answer'), status: 503 })
  // From now on nobody waits for it.
  const calls: [string, string][] = [
    ['POST', `${pc1}/stop`],
    ['POST', `${pc2}/start`],
    ['DELETE', pc1],
    ['DELETE', pc2],
    ['DELETE', `${pc1}/adapters/0/ports/0/nio`],
    ['DELETE', project],
    ['POST', `${project}/close`],
  ]
  for (const [method, path] of calls) expect((await service.fetch(path, { method })).status, path).toBe(503)
  expect(await service.call<Shown>('GET', pc1)).toEqual({
    ...before,
    status_reason: expect.stringContaining('last known status'),
  })
  goOn()
  await expect.poll(() => service.call('GET', pc1)).toEqual(before)
  await expect.poll(() => status(service, pc2)).toBe('stopped')
  await start(service, pc2)
  const console = await openConsole(service, pc1)
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
  await service.call('DELETE', project)
})

test('a service that starts beside a hanging keeper shows the last known states, deletes nothing, and reconciles them later', async () => {
  const settings = { 'pc.engine': 'embedded' }
  const service = await TestService.start(settings)
  const { project, pc1, pc2 } = await createLab(service)
  await start(service, pc1)
  const before = await service.call<Shown>('GET', pc1)
  const { hang, goOn } = await keeperOf(service)
  await service.kill('SIGKILL')
  const written = await records(service)
  hang()
  await service.restart()
  const [one, two] = [await service.call<Shown>('GET', pc1), await service.call<Shown>('GET', pc2)]
  expect(one).toEqual({ ...before, status_reason: expect.stringContaining('last known status') })
  expect(two).toMatchObject({ status: 'stopped', status_reason: expect.stringContaining('last known status') })
  for (const [method, path] of [
    ['POST', `${pc1}/stop`],
    ['POST', `${pc2}/start`],
    ['DELETE', pc1],
    ['DELETE', pc2],
    ['DELETE', project],
  ] as const) {
    const answer = await service.fetch(path, { method })
    expect([answer.status, answer.headers.has('Retry-After')], path).toEqual([503, true])
  }
  expect((await service.fetch(pc1, { method: 'PUT', body: '{"name":"x"}' })).status).toBe(503)
  expect(await records(service)).toEqual(written)
  const { checks } = await service.call<{ checks: { name: string; status: string }[] }>('GET', '/v2/compute/doctor')
  expect(checks.find(({ name }) => name === 'keeper')).toMatchObject({ status: 'error' })
  goOn()
  await expect.poll(() => service.call('GET', pc1)).toEqual(before)
  await expect.poll(() => service.call<Shown>('GET', pc2)).toMatchObject({ status: 'stopped', status_reason: null })
  await Terminal.connect(before.console).then((terminal) => terminal.expect(/PC\d> /))
  await service.call('POST', `${pc1}/stop`)
  await service.call('DELETE', project)
})

test('a keeper with an unknown protocol does not count as one without units', async () => {
  const settings = { 'pc.engine': 'embedded' }
  const service = await TestService.start(settings)
  const { pc1 } = await createLab(service)
  await service.end()
  // Such a one had the directory before, and still lives.
  const run = join(service.data, 'run')
  await mkdir(run, { recursive: true })
  const name = createHash('sha256')
    .update(await realpath(run))
    .digest('hex')
    .slice(0, 32)
  const lock = createServer((socket) => socket.destroy())
  lock.listen(`\0patchbay-keeper-${process.getuid?.() ?? 0}-${name}`)
  await once(lock, 'listening')
  const other = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () =>
      socket.write('{"id":0,"error":{"code":"protocol","message":"this keeper speaks protocol 2"}}\n'),
    )
  })
  other.listen(join(run, 'keeper.sock'))
  await once(other, 'listening')
  await service.restart()
  expect(await service.call<Shown>('GET', pc1)).toMatchObject({
    status_reason: expect.stringContaining('this keeper speaks protocol 2'),
  })
  expect((await service.fetch(pc1, { method: 'DELETE' })).status).toBe(503)
  expect((await service.fetch(`${pc1}/start`, { method: 'POST' })).status).toBe(503)
  // When it has ended all is known again.
  other.close()
  lock.close()
  await expect.poll(() => service.call<Shown>('GET', pc1)).toMatchObject({ status: 'stopped', status_reason: null })
  await start(service, pc1)
})
