import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { identify } from '../../../runtime/node/os/system/process-identity.ts'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

test('the service of up is started once, found by all commands, and ended', async () => {
  const patchbay = await CommandLine.of()
  expect(await patchbay.run(['service', 'status'])).toMatchObject({ code: 5, out: 'No service is running\n' })
  expect(await patchbay.run(['ls'])).toMatchObject({ code: 5, err: expect.stringContaining('patchbay up') })

  // Two commands at once: the data directory has one service.
  const both = await Promise.all([1, 2].map(() => patchbay.json<{ url: string }>(['service', 'start'])))
  expect(both[0]?.url).toBe(both[1]?.url)
  const { url = '' } = both[0] ?? {}
  expect((await patchbay.run(['service', 'start'])).out).toBe(`A service is already running on ${url}\n`)
  expect((await patchbay.run(['service', 'status'])).out).toContain(`Running on ${url}\n`)
  expect((await patchbay.run(['ls'])).out).toBe(`No labs on ${url}\n`)

  const file = join(patchbay.data, 'run/service.json')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const told = JSON.parse(await readFile(file, 'utf8')) as { process: { pid: number } }
  expect((await patchbay.run(['service', 'stop'])).out).toBe(`Stopped the service on ${url}\n`)
  expect(identify(told.process.pid)).toBeUndefined()
  // Without nodes its keeper has nothing to keep.
  await expect.poll(() => keepersOf(patchbay.data)).toEqual([])
  await expect(stat(file)).rejects.toThrow('ENOENT')
  expect(await patchbay.run(['service', 'stop'])).toMatchObject({ code: 0, out: 'No service is running\n' })
})

test('service stop says which nodes keep running, and the next service takes them over', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.file('one.lab.yaml', 'lab: one\nnodes:\n  PC1: { kind: pc }\n  PC2: { kind: pc }\n')
  await patchbay.run(['up'])
  await patchbay.run(['stop', 'one/PC2'])
  const { out } = await patchbay.run(['service', 'stop'])
  expect(out).toMatch(
    /^Stopped the service on \S+\. These nodes keep running:\n {2}one: 1 node\n"patchbay service start" /,
  )
  await patchbay.run(['service', 'start'])
  expect((await patchbay.run(['ls'])).out).toMatch(/one +running +1 of 2\n/)
  expect(await patchbay.json(['service', 'stop'])).toMatchObject({ still_running: [{ lab: 'one', nodes: 1 }] })
  await patchbay.run(['service', 'start'])
  await patchbay.run(['down', 'one'])
  expect((await patchbay.run(['service', 'stop'])).out).toMatch(/^Stopped the service on \S+\n$/)
})

/** Command lines of the keepers of a data directory. */
async function keepersOf(data: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((it) => /^\d+$/.test(it))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((it) => it.includes(`\0${data}\0`) && it.includes('keeper'))
}

test('the file of a killed service, or of another process with its PID, is ignored', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.json(['service', 'start'])
  const file = join(patchbay.data, 'run/service.json')
  const told = JSON.parse(await readFile(file, 'utf8')) as { process: { pid: number } }
  process.kill(told.process.pid, 'SIGKILL')
  await expect.poll(async () => (await patchbay.run(['service', 'status'])).code).toBe(5)
  await writeFile(file, JSON.stringify({ ...told, process: { ...told.process, pid: process.pid } }))
  expect(await patchbay.run(['service', 'status'])).toMatchObject({ code: 5 })
  await writeFile(file, 'not JSON')
  expect(await patchbay.run(['service', 'status'])).toMatchObject({ code: 5 })
})

test('another port is used when the port is taken, and wrong settings are reported', async () => {
  const patchbay = await CommandLine.of()
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const { port } = other.address() as { port: number }
  const taken = { PATCHBAY_PORT: String(port) }
  const started = await patchbay.run(['service', 'start'], { env: taken })
  expect(started).toMatchObject({ code: 0, out: expect.not.stringContaining(`:${port}`) })
  await patchbay.run(['service', 'stop'])
  const wrong = await patchbay.run(['service', 'start'], { env: { PATCHBAY_PC_ENGINE: 'nothing' } })
  expect(wrong).toMatchObject({ code: 5, err: expect.stringContaining('PATCHBAY_PC_ENGINE') })
})

test('commands of the same user read the token of a service on this machine', async () => {
  const patchbay = await CommandLine.of()
  const service = await TestService.start({ token: 'token-of-the-test' })
  const env = { PATCHBAY_DATA: service.data }
  expect(await patchbay.run(['ls'], { env })).toMatchObject({ code: 0, out: `No labs on ${service.url}\n` })
  const byName = await patchbay.run(['ls', '--server', service.url], { env })
  expect(byName).toMatchObject({ code: 5, err: expect.stringContaining('PATCHBAY_TOKEN') })
})

test('the log of the service is shown, and followed', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.run(['service', 'start'])
  expect(await patchbay.run(['service', 'logs', '--lines', 'many'])).toMatchObject({ code: 64 })
  expect(await patchbay.json(['service', 'logs'])).toMatchObject({ ok: true, lines: expect.any(Array) })
  const follower = patchbay.start(['service', 'logs', '-f'])
  let text = ''
  follower.stdout.on('data', (piece) => {
    text += String(piece)
  })
  await new Promise((resolve) => follower.once('spawn', resolve))
  const line = 'a line of the test\n'
  // The follower may not watch the file yet: what is there before is shown, too.
  await writeFile(join(patchbay.data, 'run/service.log'), line, { flag: 'a' })
  await expect.poll(() => text).toContain(line)
  follower.kill('SIGINT')
  const code = await new Promise((resolve) => follower.once('exit', resolve))
  expect(code).toBe(130)
})
