import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { AuthContext, Client } from 'ssh2'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { consoleOfUser } from '../../../../runtime/node/service/ssh/console-name.ts'
import { SshLogIn } from '../../../../runtime/node/service/ssh/log-in.ts'
import { LoginLimit } from '../../../../src/server/auth/login-limit.ts'
import { freePort } from '../../../support/ports.ts'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { newKey, SshSession, sshClient, tokenWithKey } from '../../../support/ssh.ts'
import { testWith } from '../../../support/test-with.ts'

const port = freePort()
let service: TestService
let ann: Awaited<ReturnType<typeof tokenWithKey>>

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded', 'ssh.port': port, 'limits.wrong_logins': 1 })
  const { project_id } = await service.call('POST', '/v2/projects', { name: 'wan' })
  for (const name of ['R1', 'a/b 50%', 'off']) {
    const node = { name, node_type: 'pc', properties: { startup_script: 'set pcname R1\n' } }
    const { node_id } = await service.call('POST', `/v2/projects/${project_id}/nodes`, node)
    if (name !== 'off') await service.call('POST', `/v2/projects/${project_id}/nodes/${node_id}/start`)
  }
  ann = await tokenWithKey(service)
})
afterAll(() => service?.close())

/** What the library sends packets with: it sends none of itself that a client should not send. */
interface RawClient {
  readonly _protocol: {
    shell(id: number, wantReply: boolean): void
    exec(id: number, line: string, wantReply: boolean): void
  }
}

const asAnn = (user = 'wan/R1') => sshClient({ port, username: user, privateKey: ann.privateKey })
const run = promisify(execFile)

/** What OpenSSH's client says, and how it exits. */
async function openSsh(user: string, privateKey: string, ...line: string[]) {
  const [key, hosts] = [join(service.data, `key-${crypto.randomUUID()}`), join(service.data, 'known-hosts')]
  await writeFile(key, privateKey, { mode: 0o600 })
  const options = [
    'StrictHostKeyChecking=accept-new',
    `UserKnownHostsFile=${hosts}`,
    'IdentitiesOnly=yes',
    'BatchMode=yes',
  ]
  const args = [
    '-F',
    'none',
    ...options.flatMap((it) => ['-o', it]),
    '-i',
    key,
    '-p',
    String(port),
    '-n',
    '-l',
    user,
    '127.0.0.1',
  ]
  return run('ssh', [...args, ...line]).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

testWith(requireProgram('ssh'))('OpenSSH types a line on a console, and exits as "patchbay exec" does', async () => {
  const answer = await openSsh('wan/R1', ann.privateKey, 'echo', 'by', 'ssh')
  expect(answer).toMatchObject({ code: 0, stdout: expect.stringMatching(/^echo by ssh\nby ssh\n\nR1> *\n$/) })
  // The names of labs and nodes are any text.
  expect(await openSsh('wan/a%2Fb 50%25', ann.privateKey, 'echo careful')).toMatchObject({ code: 0 })
  const refused = [
    ['wan/R2', 1, 'patchbay: node_id: the project wan has no node'],
    ['lan/R1', 1, 'patchbay: project_id: there is no project lan'],
    ['wan/off', 1, 'patchbay: The node is not running: start it first'],
    ['wan', 64, 'patchbay: expected LAB/NODE as the user name, got "wan"'],
  ] as const
  for (const [user, code, message] of refused)
    expect(await openSsh(user, ann.privateKey, 'echo')).toMatchObject({
      code,
      stderr: expect.stringContaining(message),
    })
  expect(await openSsh('wan/R1', newKey().private, 'echo')).toMatchObject({
    ...{ code: 255, stderr: expect.stringContaining('Permission denied (publickey)') },
  })
})

test('a client with a terminal gets what the console has shown, and types', async () => {
  const session = await SshSession.shell(await asAnn())
  await session.shows('R1> ')
  session.channel.write('echo typed by ann\r')
  await session.shows('\r\ntyped by ann')
  // It has ended its input: the session ends when the console is quiet.
  session.channel.end('echo the last line\r')
  await session.shows('\r\nthe last line')
  expect(await session.closed).toBe(0)
})

test('a token that may read watches, and the scope of a token holds', async () => {
  const bob = await tokenWithKey(service, { name: 'bob', role: 'read' })
  const client = await sshClient({ port, username: 'wan/R1', privateKey: bob.privateKey })
  const watching = await SshSession.shell(client)
  await watching.shows('Watching wan/R1: the token bob may only read.')
  watching.channel.write('echo typed by bob\r')
  const session = await SshSession.exec(await asAnn(), 'echo shown to bob')
  await watching.shows('\r\nshown to bob')
  expect(await session.closed).toBe(0)
  expect(watching.shown).not.toContain('typed by bob')
  const refused = await SshSession.exec(client, 'echo')
  expect(await refused.closed).toBe(1)
  expect(refused.shown).toContain('needs the role operate; "bob" has the role read')

  const cat = await tokenWithKey(service, { name: 'cat', projects: ['class-*'] })
  const outside = await SshSession.shell(await sshClient({ port, username: 'wan/R1', privateKey: cat.privateKey }))
  expect(await outside.closed).toBe(1)
  expect(outside.shown).toContain('there is no project wan')
})

test('a key that was removed opens no session any more, and its client cannot log in again', async () => {
  const dan = await tokenWithKey(service, { name: 'dan' })
  const client = await sshClient({ port, username: 'wan/R1', privateKey: dan.privateKey })
  await service.fetch(`/v2/tokens/${dan.token_id}/ssh_keys/${dan.key_id}`, { method: 'DELETE' })
  const session = await SshSession.exec(client, 'echo')
  expect(await session.closed).toBe(5)
  await expect(sshClient({ port, username: 'wan/R1', privateKey: dan.privateKey })).rejects.toThrow('authentication')
})

test('there are consoles and nothing else: no forwarding, files, subsystems, and no log-in by password', async () => {
  const client = await asAnn()
  const refused = (open: (client: Client, done: (error: Error | undefined) => void) => void) =>
    new Promise<string>((resolve) => open(client, (error) => resolve(error?.message ?? 'opened')))
  expect(await refused((it, done) => it.forwardOut('127.0.0.1', 1, '127.0.0.1', port, done))).toMatch(/open failure/)
  expect(await refused((it, done) => it.forwardIn('127.0.0.1', 0, done))).toMatch(/Unable to bind/)
  expect(await refused((it, done) => it.sftp(done))).toMatch(/Unable to start subsystem/)
  expect(await refused((it, done) => it.subsys('netconf', done))).toMatch(/Unable to start subsystem/)
  expect(await refused((it, done) => it.exec('x', { x11: true }, done))).toMatch(/X11/)
  await expect(sshClient({ port, username: 'wan/R1', password: 'secret' })).rejects.toThrow('authentication')
})

test('a connection has ten sessions at most', async () => {
  const client = await asAnn()
  const sessions = await Promise.allSettled(Array.from({ length: 11 }, () => SshSession.shell(client)))
  expect(sessions.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
})

test('who asks for a second program in one session is disconnected, and others are served on', async () => {
  for (const second of ['shell', 'exec']) {
    const client = await asAnn()
    const { channel } = await SshSession.shell(client)
    const closed = once(client, 'close')
    const { _protocol } = client as unknown as RawClient
    const { id } = (channel as unknown as { outgoing: { id: number } }).outgoing
    if (second === 'shell') _protocol.shell(id, true)
    else _protocol.exec(id, 'echo', true)
    await closed
  }
  const session = await SshSession.exec(await asAnn(), 'echo still here')
  expect(await session.closed).toBe(0)
})

test('a log-in that cannot be checked is a defect, and no wrong one', async () => {
  const broken = new Error('the tokens cannot be read')
  const logins = new LoginLimit({ perMinute: () => 1 })
  const logIn = new SshLogIn({ logins, tokensOf: () => Promise.reject(broken) }, '192.0.2.1')
  const key = { algo: 'ssh-ed25519', data: Buffer.alloc(51) }
  const attempt = { method: 'publickey', username: 'wan/R1', key, accept: vi.fn(), reject: vi.fn() }
  await expect(logIn.answer(attempt as unknown as AuthContext)).rejects.toBe(broken)
  expect(attempt.accept).not.toHaveBeenCalled()
})

test('what is no SSH is disconnected: other protocols, huge packets, and text without end', async () => {
  const huge = Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), Buffer.from([0x7f, 0xff, 0xff, 0xff, 4, 20])])
  for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), huge, Buffer.alloc(1 << 20, 'a')]) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {}).resume()
    socket.write(bytes)
    await once(socket, 'close')
  }
  expect((await service.fetch('/v2/compute/version')).status).toBe(200)
})

test('wrong keys are limited by address, and the right one still logs in', async () => {
  const count = async (what: string) => {
    const metrics = await (await service.fetch('/metrics')).text()
    return Number(new RegExp(`patchbay_login_${what}_total\\{kind="ssh"\\} (\\d+)`).exec(metrics)?.[1])
  }
  // Ten times `limits.wrong_logins` a minute.
  for (let tries = 0; (await count('refusals')) === 0; tries++) {
    expect(tries).toBeLessThan(30)
    await expect(sshClient({ port, username: 'wan/R1', privateKey: newKey().private })).rejects.toThrow()
  }
  expect(await count('failures')).toBeGreaterThan(0)
  await asAnn()
})

test('a user name means a console', () => {
  expect(consoleOfUser('wan/R1')).toEqual({ lab: 'wan', node: 'R1' })
  expect(consoleOfUser('a%2Fb/50%/shell')).toEqual({ lab: 'a/b', node: '50%', console: 'shell' })
  expect(consoleOfUser('/school/wan/R1')).toEqual({ organization: 'school', lab: 'wan', node: 'R1' })
  expect(consoleOfUser('/school/wan/R1/shell')).toMatchObject({ organization: 'school', console: 'shell' })
  for (const user of ['', 'wan', '/', '/wan', '/wan/R1', 'wan/', 'wan//x', 'a/b/c/d'])
    expect(consoleOfUser(user)).toBeUndefined()
})
