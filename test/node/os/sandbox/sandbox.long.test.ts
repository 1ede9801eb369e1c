import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram, startProgram } from '../../../../runtime/node/os/programs/start.ts'
import { landlockWithTcp } from '../../../../runtime/node/os/sandbox/sandbox.ts'
import { findUser } from '../../../../runtime/node/os/sandbox/user.ts'
import { confinementCheck } from '../../../../runtime/node/service/doctor/confinement.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { startKeeper } from '../../../support/keeper.ts'
import { freePorts } from '../../../support/ports.ts'
import { stateOf } from '../../../support/processes.ts'
import { requireProgram, requireRoot } from '../../../support/require.ts'
import { confinementBy, defaultSandbox, sandboxOf } from '../../../support/sandbox.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const root = requireRoot()

test('nothing is confined in local mode', async () => {
  expect(await (await sandboxOf({ require_sandbox: true }, true)).confinement()).toBeUndefined()
})

testWith(requireRoot())('where nothing confines, programs run with a warning, or not at all', async () => {
  const none = { emulator_user: 'nobody-of-that-name' }
  const warnings: string[] = []
  const may = await sandboxOf(none)
  expect(await may.confinement((reason) => warnings.push(reason))).toBeUndefined()
  expect(warnings).toEqual(['it runs without confinement: emulator_user: this host has no user nobody-of-that-name'])
  const must = await sandboxOf({ ...none, require_sandbox: true })
  await expect(must.confinement()).rejects.toMatchObject({
    status: 409,
    message: expect.stringMatching(/require_sandbox.*nobody-of-that-name/),
  })
})

test('with the sandbox off programs do not run where it is required', async () => {
  const off = await sandboxOf({ sandbox: 'off', require_sandbox: true })
  await expect(off.confinement()).rejects.toMatchObject({ status: 409 })
})

test('the user of emulators is a name of the host, or two numbers', () => {
  expect(findUser('nobody')).toMatchObject({ name: 'nobody', uid: 65_534 })
  expect(findUser('1234:5678')).toEqual({ name: '1234:5678', uid: 1234, gid: 5678 })
  expect(findUser('no such user')).toBeUndefined()
})

testWith(root)('the doctor says what protects the host', async () => {
  const settings = { ...defaultSandbox, local: false }
  expect(await confinementCheck(settings)).toMatchObject({
    status: 'ok',
    found: expect.stringMatching(/^(bubblewrap|namespaces), as nobody, (no )?Landlock/),
  })
  const broken = { ...settings, emulator_user: 'none', require_sandbox: true }
  expect(await confinementCheck(broken)).toMatchObject({
    status: 'error',
    fix: expect.stringContaining('emulator_user'),
  })
  expect(await confinementCheck({ ...settings, sandbox: 'off' })).toMatchObject({ status: 'warning' })
  expect(await confinementCheck({ ...settings, sandbox: 'off', local: true })).toMatchObject({ status: 'ok' })
})

for (const by of ['bubblewrap', 'namespaces'] as const) {
  const bwrap = by === 'bubblewrap' && requireProgram('bwrap')
  testWith(
    root,
    bwrap,
    requireProgram('python3'),
  )(`with the network of the host a program listens on its port and connects to none: ${by}`, async ({ skip }) => {
    const sandbox = await sandboxOf({ sandbox: by })
    const confinement = await sandbox.confinement()
    if (confinement === undefined || confinement.landlock < landlockWithTcp)
      return skip('the kernel has no Landlock with rules for TCP')
    const listener = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    onTestFinished(() => void listener.close())
    const { port } = listener.address() as AddressInfo
    const own = freePorts(3)
    const cell = { cwd: '/', network: 'host', listens: [own] } as const
    const python = async (script: string) => {
      const { command, args } = confinement.wrap(cell, '/usr/bin/python3', ['-c', `import socket; ${script}`])
      const { error, stdout, stderr } = await runProgram(command, args, { ms: 10_000 })
      return error === null ? stdout.trim() : stderr.trim().split('\n').at(-1)
    }
    expect(await python(`socket.create_connection(("127.0.0.1", ${port})); print("reached")`)).toContain(
      'Permission denied',
    )
    expect(await python(`socket.create_server(("127.0.0.1", ${own + 1})); print("listens")`)).toContain(
      'Permission denied',
    )
    expect(await python(`socket.create_server(("127.0.0.1", ${own})); print("listens")`)).toBe('listens')
    expect(
      await python(`socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("127.0.0.1", ${own + 2})); print("binds")`),
    ).toBe('binds')
  })

  testWith(root, bwrap)(`a confined program inherits only the three standard descriptors: ${by}`, async () => {
    const confinement = await confinementBy(by)
    const script = 'n=3; while [ $n -lt 64 ]; do [ -L /proc/self/fd/$n ] && echo $n; n=$((n + 1)); done; echo done'
    const { command, args } = confinement.wrap({ cwd: '/', network: 'none' }, '/bin/sh', ['-c', script])
    const high = openSync('/etc/hostname', 'r')
    onTestFinished(() => closeSync(high))
    const between = Array<'ignore'>(37).fill('ignore')
    const child = startProgram(command, args, { stdio: ['ignore', 'pipe', 'inherit', 'pipe', ...between, high] })
    expect(await text(child.stdout as Readable)).toBe('done\n')
  })

  testWith(root, bwrap)(
    `a confined program is asked politely to end, and its end is reported as it was: ${by}`,
    async () => {
      const keeper = await startKeeper()
      const sandbox = await sandboxOf({ sandbox: by })
      const confinement = await sandbox.confinement()
      if (confinement === undefined) throw new Error('nothing confines here')
      const directory = await freshDirectory()
      await chmod(directory, 0o777)
      const script = async (name: string, text: string) => {
        await writeFile(join(directory, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
        const cell = { cwd: directory, network: 'none', writable: [directory] } as const
        const wrapped = confinement.wrap(cell, join(directory, name), [])
        const run = {
          type: 'process',
          ...wrapped,
          cwd: directory,
          log: join(directory, 'log'),
          stdio: 'pipe',
          is_wrapped: true,
        } as const
        return keeper.client.call('unit.start', { key: `test:${name}`, run: { ...run, ready: 'ready' } })
      }
      const polite = await script(
        'polite',
        'trap "echo bye >said; exit 3" TERM; echo ready; while :; do sleep 0.05; done',
      )
      expect(stateOf(polite.pid).name).toBe('polite')
      const stop = (key: string) => keeper.client.call('unit.stop', { key, grace_ms: 5000 })
      expect((await stop('test:polite')).exit).toMatchObject({ code: 3, signal: null })
      await script('plain', 'echo ready; exec sleep 60')
      expect((await stop('test:plain')).exit).toMatchObject({ code: null, signal: 'SIGTERM' })
      await script('deaf', 'trap "" TERM; echo ready; while :; do sleep 0.05; done')
      const { exit } = await keeper.client.call('unit.stop', { key: 'test:deaf', grace_ms: 100 })
      expect(exit).toMatchObject({ signal: 'SIGKILL' })
      const limited = await script('limited', 'echo ready; while :; do :; done')
      await keeper.client.call('unit.limit', { key: 'test:limited', cpu_percent: 10 })
      await expect.poll(() => stateOf(limited.pid).state, { interval: 5 }).toBe('T')
      await stop('test:limited')
    },
  )
}

test('with require_sandbox a service outside local mode refuses emulators that nothing confines, and says why', async () => {
  const settings = { local: false, require_sandbox: true, sandbox: 'off' }
  const service = await TestService.start(settings)
  const { project_id } = await service.call('POST', '/v2/compute/projects', { name: 'lab' })
  const nodes = `/v2/compute/projects/${project_id}/machine-emulator/nodes`
  const answer = await service.fetch(nodes, { method: 'POST', body: '{"name": "R1", "platform": "x86_64"}' })
  expect([answer.status, await answer.json()]).toMatchObject([
    409,
    { message: expect.stringContaining('require_sandbox') },
  ])
  const doctor = await service.call<{ ok: boolean; checks: { name: string; status: string }[] }>(
    'GET',
    '/v2/compute/doctor',
  )
  expect(doctor.checks.find(({ name }) => name === 'confinement')).toMatchObject({ status: 'error' })
})
