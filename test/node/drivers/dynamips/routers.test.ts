import { once } from 'node:events'
import { chmod, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { unprivileged } from '../../../../runtime/node/drivers/dynamips/program.ts'
import { reach } from '../../../../runtime/node/drivers/dynamips/ready.ts'
import { elsewhere, idling, ring } from '../../../stand-in/mips/programs.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { hex } from '../../../support/dynamips.ts'
import { portArguments } from '../../../support/ports.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith, provided, testWith } from '../../../support/test-with.ts'
import { RouterLab, type RouterRef } from './router-lab.ts'

const needsDynamips = requireProgram('dynamips')
const idlepc = hex(ring[3] ?? 0)

/** A program that pretends to be dynamips. */
async function pretender(script: string): Promise<string> {
  const file = join(await freshDirectory(), 'dynamips')
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return file
}

/** A program that takes the commands of dynamips, and fails to resume a router once. */
function resumesLate(words: readonly string[]): void {
  const { appendFileSync } = process.getBuiltinModule('node:fs')
  const { createServer } = process.getBuiltinModule('node:net')
  const [host = '', port = ''] = words.at(-1)?.split(':') ?? []
  let [status, failures] = [0, 1]
  const answer = (command: string): string => {
    if (command === 'vm resume' && failures-- > 0) return '209-unable to resume'
    if (command === 'vm extract_config') return '206-unable to extract config'
    status = { 'vm start': 2, 'vm suspend': 3, 'vm resume': 2 }[command] ?? status
    return `100-${status}`
  }
  const server = createServer((socket) => {
    socket.on('data', (bytes) => {
      for (const line of String(bytes).trim().split('\n')) socket.write(`${answer(line.split(' ', 2).join(' '))}\r\n`)
    })
  })
  server.listen(Number(port), host, () => appendFileSync('dynamips.log', `IP = ${host}, TCP port = ${port}.\n`))
}

/** That it does not start, for that reason, and that nothing of it is left. */
async function requireRefused(lab: RouterLab, ref: RouterRef, message: unknown): Promise<void> {
  await expect(lab.agent.nodes.start(ref)).rejects.toMatchObject({ status: 409, message })
  expect(await lab.get(ref)).toMatchObject({ status: 'stopped', status_reason: message })
  expect([lab.pids, await lab.ports()]).toEqual([[], []])
}

describeWith(needsDynamips)('a router', () => {
  test('with an image that cannot be loaded does not start, in the words of dynamips', async () => {
    const lab = await RouterLab.open()
    const ref = await lab.router(elsewhere)
    await requireRefused(
      lab,
      ref,
      expect.stringMatching(/^vm start: unable to start VM instance 'router': .*invalid load address/s),
    )
    expect((await lab.get(ref)).status_reason).not.toContain(lab.data)
  })

  test('has its durable files only, without those of a run; so has a copy', async () => {
    const lab = await RouterLab.open()
    const { nodes } = lab.agent
    const [ref, other] = [await lab.router(idling, { idlepc }), await lab.router(idling)]
    const files = async (of: RouterRef) => (await readdir((await lab.get(of)).node_directory)).sort()
    await nodes.start(ref)
    expect(await files(ref)).toEqual(expect.arrayContaining(['c7200_i1_lock', 'c7200_i1_nvram', 'image.bin']))
    await nodes.duplicate(ref, other.node_id)
    const kept = ['bootflash', 'disk0', 'log.txt', 'nvram'].map((name) => `c7200_i1_${name}`)
    expect(await files(other)).toEqual([...kept, 'dynamips.log', 'errors.txt'])
    expect(await lab.get(ref)).toMatchObject({ status: 'started' })
    await nodes.stop(ref)
    expect(await files(ref)).toEqual([...kept, 'dynamips.log', 'errors.txt'])
    await nodes.start(other)
    await nodes.start(ref)
    expect(lab.pids).toHaveLength(2)
    expect(new Set(await lab.ports()).size).toBe(2)
  })

  testWith(provided(process.platform === 'linux', 'this system has one loopback address'))(
    'takes no commands at 127.0.0.1, where a web page could give them',
    async () => {
      const lab = await RouterLab.open()
      const ref = await lab.router(idling)
      await lab.agent.nodes.start(ref)
      const [port = 0] = await lab.ports()
      const log = await readFile(join((await lab.get(ref)).node_directory, 'dynamips.log'), 'utf8')
      expect(log).toMatch(new RegExp(`IP = 127(\\.\\d+){3}, TCP port = ${port}\\.`))
      const page = connect(port, '127.0.0.1')
      const refused = await new Promise((resolve) => {
        page.once('connect', () => resolve('connected')).once('error', ({ message }) => resolve(message))
      })
      page.destroy()
      expect(refused).toContain('ECONNREFUSED')
    },
  )

  test('takes commands on a port that no other program has', async () => {
    const ports = portArguments()
    const first = Number(/--console-port-range=(\d+)/.exec(ports.join(' '))?.[1])
    const server = createServer((socket) => socket.destroy()).listen({ port: first, host: '127.0.0.1' })
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const lab = await RouterLab.open({ ports })
    const ref = await lab.router(idling, { idlepc })
    await lab.agent.nodes.start(ref)
    expect(await lab.ports()).toEqual([first + 1])
  })

  test('whose program ends is shown stopped, and starts again', async () => {
    const lab = await RouterLab.open()
    const ref = await lab.router(idling, { idlepc })
    await lab.agent.nodes.start(ref)
    process.kill(lab.pids[0] ?? 0, 'SIGKILL')
    await expect.poll(async () => (await lab.get(ref)).status).toBe('stopped')
    expect(await lab.ports()).toEqual([])
    await lab.agent.nodes.start(ref)
    expect(lab.pids).toHaveLength(1)
  })
})

describe('without dynamips, a router', () => {
  test('does not start, and the message says how to install dynamips', async () => {
    const lab = await RouterLab.open({ program: 'no-such-dynamips' })
    await requireRefused(
      lab,
      await lab.router(idling),
      'no-such-dynamips was not found (dynamips.path); sudo apt-get install dynamips (Debian: component non-free)',
    )
  })

  test('does not start, and the message has the output of a program that ends', async () => {
    const lab = await RouterLab.open({ program: await pretender('echo "no room left" >&2; exit 1') })
    await requireRefused(lab, await lab.router(idling), 'The program ended at once (exit code 1): no room left')
  })

  test('does not start with a program that is silent and does not end, which is killed', async () => {
    const program = await pretender("trap '' TERM; while :; do sleep 0.1; done")
    const lab = await RouterLab.open({ program, bounds: { begin: 300, end: 200 } })
    await requireRefused(lab, await lab.router(idling), 'Dynamips does not accept commands')
  })

  test('that does not resume after a copy is shown suspended, and can be resumed', async () => {
    const program = join(await freshDirectory(), 'dynamips')
    await writeFile(program, `#!${process.execPath}\n(${resumesLate})(process.argv)`, { mode: 0o755 })
    const lab = await RouterLab.open({ program })
    const { nodes } = lab.agent
    const [ref, other] = [await lab.router(idling), await lab.router(idling)]
    await nodes.start(ref)
    await nodes.duplicate(ref, other.node_id)
    await expect.poll(async () => (await lab.get(ref)).status).toBe('suspended')
    await nodes.resume(ref)
    expect(await lab.get(ref)).toMatchObject({ status: 'started' })
  })

  test('does not start when its file is no longer an image', async () => {
    const lab = await RouterLab.open({ program: process.execPath })
    const ref = await lab.router(idling)
    await writeFile(join(lab.data, 'images/dynamips', (await lab.get(ref)).image), 'hostname R1\n')
    await requireRefused(lab, ref, expect.stringContaining('is not an IOS image'))
  })
})

test('another program at the port is not mistaken for dynamips', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.end('100-OK\r\n')
  }).listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const directory = await freshDirectory()
  await writeFile(join(directory, 'dynamips.log'), `HYPERVISOR: Started on IP = 127.0.0.1, TCP port = ${port + 1}.\n`)
  const ended = new AbortController()
  const late = reach({ directory, port, ms: 100, signal: ended.signal })
  await expect(late).rejects.toMatchObject({ code: 'unreachable' })
  ended.abort()
  const over = reach({ directory, port, ms: 10_000, signal: ended.signal })
  await expect(over).rejects.toMatchObject({ code: 'aborted' })
  expect(connections).toBe(0)
})

describe('the program', () => {
  async function program(content: Buffer | string): Promise<string> {
    const file = join(await freshDirectory(), 'program')
    await writeFile(file, content)
    await chmod(file, 0o755)
    return file
  }
  const elf = (rest: string) => Buffer.from(`\x7fELF${rest}`, 'latin1')

  test('is run as a copy, which is made again for another one', async () => {
    const [run, original] = [await freshDirectory(), await program(elf('one'))]
    const copy = await unprivileged(original, run)
    expect(copy).toBe(join(run, 'dynamips'))
    const { ino } = await stat(copy)
    await unprivileged(original, run)
    expect((await stat(copy)).ino).toBe(ino)
    await writeFile(original, elf('two'))
    await utimes(original, 1, 1)
    await unprivileged(original, run)
    expect(await readFile(copy)).toEqual(elf('two'))
    expect(await readdir(run)).toEqual(['dynamips'])
  })

  test('is run where it is when it is a script', async () => {
    const script = await program('#!/bin/sh\n')
    expect(await unprivileged(script, await freshDirectory())).toBe(script)
  })
})
