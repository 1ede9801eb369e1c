import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Qmp, type QmpEvent } from '../../../../runtime/node/drivers/qemu/qmp.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'
import { bareQemu, monitor, qemuName, temporaryDirectory } from './qemu-process.ts'

const needsQemu = requireProgram(qemuName)
const qemuTest = testWith(needsQemu)

qemuTest('a monitor that appears a moment after the process is reached', async () => {
  const { socket } = await bareQemu('-machine', 'none')
  const qmp = await monitor(socket)
  expect(qmp.version.major).toBeGreaterThan(1)
  expect(await qmp.execute('query-status', {}, hangMs)).toMatchObject({ running: false, status: 'prelaunch' })
})

qemuTest('commands that overlap get each its own answer', async () => {
  const qmp = await monitor((await bareQemu('-machine', 'none')).socket)
  const [status, version, target] = await Promise.all([
    qmp.execute<{ status: string }>('query-status', {}, hangMs),
    qmp.execute<{ qemu: object }>('query-version', {}, hangMs),
    qmp.execute<{ arch: string }>('query-target', {}, hangMs),
  ])
  expect(status.status).toBe('prelaunch')
  expect(version.qemu).toMatchObject({ major: qmp.version.major })
  expect(target.arch).toBe('x86_64')
})

qemuTest('a refusal says which command, and why', async () => {
  const qmp = await monitor((await bareQemu('-machine', 'none')).socket)
  await expect(qmp.execute('set_link', { name: 'nothing', up: true }, hangMs)).rejects.toMatchObject({
    code: 'refused',
    qmpClass: 'DeviceNotFound',
    message: "set_link: Device 'nothing' not found",
  })
  expect(qmp.isOpen).toBe(true)
})

qemuTest('an answer of hundreds of kilobytes arrives whole', async () => {
  const qmp = await monitor((await bareQemu('-machine', 'none')).socket)
  const schema = await qmp.execute<unknown[]>('query-qmp-schema', {}, hangMs)
  expect(JSON.stringify(schema).length).toBeGreaterThan(100_000)
})

qemuTest('events of pausing, resetting and powering down are reported in order', async () => {
  const qmp = await monitor((await bareQemu('-machine', 'pc')).socket)
  const seen: string[] = []
  const stop = qmp.onEvent(({ event }) => seen.push(event))
  await qmp.execute('cont', {}, hangMs)
  await qmp.execute('stop', {}, hangMs)
  const reset = qmp.nextEvent(({ event }) => event === 'RESET', 1000)
  await qmp.execute('system_reset', {}, hangMs)
  expect(await reset).toMatchObject({ data: { guest: false, reason: 'host-qmp-system-reset' } })
  const powerdown = qmp.nextEvent(({ event }) => event === 'POWERDOWN', 1000)
  await qmp.execute('system_powerdown', {}, hangMs)
  await powerdown
  stop()
  expect(seen).toEqual(['RESUME', 'STOP', 'RESET', 'POWERDOWN'])
})

qemuTest('a wait for an event that is given up ends at once, and looks at no more events', async () => {
  const qmp = await monitor((await bareQemu('-machine', 'pc')).socket)
  const over = new AbortController()
  const seen: string[] = []
  const see = ({ event }: QmpEvent) => {
    seen.push(event)
    return false
  }
  const next = qmp.nextEvent(see, hangMs, over.signal)
  const refused = expect(next).rejects.toThrow('given up')
  await qmp.execute('cont', {}, hangMs)
  over.abort(new Error('given up'))
  await refused
  await qmp.execute('stop', {}, hangMs)
  expect(seen).toEqual(['RESUME'])
})

qemuTest('a polite end is reported with its reason before the connection goes', async () => {
  const { socket, child, ended } = await bareQemu('-machine', 'none')
  const qmp = await monitor(socket)
  const events: QmpEvent[] = []
  qmp.onEvent((event) => events.push(event))
  child.kill('SIGTERM')
  await qmp.closed
  expect(await ended).toBe(0)
  expect(events).toEqual([{ event: 'SHUTDOWN', data: { guest: false, reason: 'host-signal' } }])
  expect(qmp.isOpen).toBe(false)
})

qemuTest('a process that is killed ends what waits for its answer', async () => {
  const { socket, child } = await bareQemu('-machine', 'none')
  const qmp = await monitor(socket)
  child.kill('SIGSTOP')
  const answer = qmp.execute('query-status', {}, hangMs)
  const event = qmp.nextEvent(() => true, 10_000)
  child.kill('SIGKILL')
  await expect(answer).rejects.toMatchObject({ code: 'closed' })
  await expect(event).rejects.toMatchObject({ code: 'closed' })
  await expect(qmp.execute('query-status', {}, hangMs)).rejects.toMatchObject({ code: 'closed' })
})

qemuTest('a process that hangs is reported after the bound, and its late answer is not taken for another', async () => {
  const { socket, child } = await bareQemu('-machine', 'none')
  const qmp = await monitor(socket)
  child.kill('SIGSTOP')
  await expect(qmp.execute('query-status', {}, 100)).rejects.toMatchObject({
    code: 'timeout',
    message: 'query-status: the emulator did not answer within 100 ms',
  })
  child.kill('SIGCONT')
  expect(await qmp.execute('query-target', {}, hangMs)).toEqual({ arch: 'x86_64' })
})

qemuTest('commands do not pile up without bound before a process that hangs', async () => {
  const { socket, child } = await bareQemu('-machine', 'none')
  const qmp = await monitor(socket)
  child.kill('SIGSTOP')
  const answers = Array.from({ length: 65 }, () => qmp.execute('query-status', {}, 200))
  const settled = await Promise.allSettled(answers)
  expect(settled.every(({ status }) => status === 'rejected')).toBe(true)
  await expect(answers[64]).rejects.toThrow('64 commands are unanswered')
})

qemuTest('a process that hangs from the start is reported after the bound of connecting', async () => {
  const { socket, child } = await bareQemu('-machine', 'none')
  ;(await monitor(socket)).close()
  child.kill('SIGSTOP')
  await expect(Qmp.connect({ path: socket, ms: 150 })).rejects.toMatchObject({ code: 'silent' })
})

qemuTest('a second client is not served, and is told so', async () => {
  const { socket } = await bareQemu('-machine', 'none')
  await monitor(socket)
  await expect(Qmp.connect({ path: socket, ms: 150 })).rejects.toThrow('it hangs, or another client uses it')
})

test('a socket that never appears is reported after the timeout', async () => {
  const path = join(await temporaryDirectory(), 'qmp.sock')
  await expect(Qmp.connect({ path, ms: 80 })).rejects.toMatchObject({ code: 'unreachable' })
})

test('the wait for the socket ends with the process', async () => {
  const path = join(await temporaryDirectory(), 'qmp.sock')
  const gone = new AbortController()
  const connecting = Qmp.connect({ path, ms: 10_000, signal: gone.signal })
  gone.abort()
  await expect(connecting).rejects.toMatchObject({ code: 'closed' })
})

test.for([
  ['a line without end', 'x'.repeat(5 << 20)],
  ['something that is not JSON', 'SSH-2.0-OpenSSH\n'],
  ['JSON that is no message', '[1, 2]\n'],
])('%s is refused', async ([, text = '']) => {
  const path = join(await temporaryDirectory(), 'qmp.sock')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(text)
  }).listen(path)
  onTestFinished(() => void server.close())
  await expect(Qmp.connect({ path, ms: hangMs })).rejects.toMatchObject({ code: 'protocol' })
})
