import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'

test('tokens are made, used, listed and revoked', async () => {
  const service = await TestService.start({ token: 'token-of-the-test' })
  const admin = await CommandLine.of({ server: service.url, token: 'token-of-the-test' })
  expect((await admin.run(['tokens', 'ls'])).out).toContain('"patchbay tokens create NAME" creates one')
  const made = await admin.run(['tokens', 'create', 'ci', '--role', 'read', '--lab', 'class-*', '--expires', '8h'])
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^[\w.~+/=-]+\n$/) })
  expect(made.err).toMatch(/^Created the token ci \(read of class-\*, until \d{4}-.*\)\. It cannot be shown again:\n$/)
  const token = made.out.trim()

  const other = await CommandLine.of({ server: service.url })
  expect(await other.run(['login'], { input: token })).toMatchObject({ code: 0 })
  expect(await other.run(['ls'])).toMatchObject({ code: 0 })
  expect(await other.run(['tokens', 'ls'])).toMatchObject({ code: 5 })
  const { out } = await admin.run(['tokens', 'ls'])
  expect(out).toMatch(/^TOKEN +ID +RIGHTS +ENDS +SECRET\nci +\S+ +read of class-\* +\d{4}-.* +\.\.\.\w{4}\n/)
  expect(out).not.toContain(token)
  const wait = { env: { PATCHBAY_COMPLETION_WAIT: `${hangMs}ms` } }
  expect((await admin.run(['complete', '--', 'tokens', 'rm', 'c'], wait)).out).toBe('ci\tread\n')

  await admin.run(['tokens', 'create', 'ci'])
  expect(await admin.run(['tokens', 'rm', 'ci'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('2 tokens have the name "ci" (give an id: '),
  })
  const { tokens } = await admin.json<{ tokens: { token_id: string; role: string }[] }>(['tokens', 'ls'])
  expect(tokens.map(({ role }) => role)).toEqual(['read', 'operate'])
  expect(await admin.run(['tokens', 'rm', tokens[0]?.token_id ?? ''])).toMatchObject({ code: 0, out: 'Revoked ci\n' })
  expect(await other.run(['ls'])).toMatchObject({ code: 5 })
})

test('a join token is for computes only, and wrong arguments are reported', async () => {
  const service = await TestService.start({ token: 'token-of-the-test' })
  const admin = await CommandLine.of({ server: service.url, token: 'token-of-the-test' })
  const join = await admin.json<{ token: string }>(['tokens', 'create', 'rack', '--join', '--compute', 'rack-1'])
  expect(join).toMatchObject({ ok: true, purpose: 'join', compute_id: 'rack-1', token: expect.any(String) })
  expect((await admin.run(['tokens', 'ls'])).out).toContain('join as rack-1')
  const wrong = [
    [['create', 'x', '--join', '--role', 'read'], 64, '--join excludes --role'],
    [['create', 'x', '--compute', 'y'], 64, '--compute needs --join'],
    [['create', 'x', '--role', 'root'], 64, 'expected one of read, operate, admin'],
    [['create', 'x', '--expires', 'soon'], 64, '--expires: expected a time such as'],
    [['rm', 'rakc'], 1, 'did you mean rack?'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await admin.run(['tokens', ...argv])).toMatchObject({ code, err: expect.stringContaining(message) })
  const open = await TestService.start({ 'pc.engine': 'embedded' })
  const none = await CommandLine.of({ server: open.url })
  expect(await none.run(['tokens', 'ls'])).toMatchObject({ code: 0, out: expect.stringContaining('No tokens on') })
  const limited = ['tokens', 'create', 'student', '--nodes', '10', '--running', '5', '--ram', '2048']
  expect((await none.run(limited)).err).toContain('operate, at most 10 nodes, 5 running, 2048 MB a lab')
  const many = [...limited.slice(0, 3), '--running', 'many']
  expect(await none.run(many)).toMatchObject({ code: 64, err: expect.stringContaining('--running: expected a number') })
})

test('public keys are added to a token from files, listed and removed', async () => {
  const service = await TestService.start({ token: 'token-of-the-test' })
  const admin = await CommandLine.of({ server: service.url, token: 'token-of-the-test' })
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-test-'))
  const [key, secret] = [join(directory, 'id.pub'), join(directory, 'id')]
  await writeFile(key, 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDrd1iSkzlEanBBAaUd/3rg3kqIGbfPdcE5pjcq5CGp8 ann@example\n')
  await writeFile(secret, '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n')
  await admin.run(['tokens', 'create', 'ann', '--role', 'read'])
  expect(await admin.run(['tokens', 'key', 'add', 'ann', key])).toMatchObject({
    ...{
      code: 0,
      out: expect.stringMatching(/^The owner of SHA256:j1vqiGj\S+ logs in by SSH with the rights of ann \(read\)/),
    },
  })
  expect((await admin.run(['tokens', 'key', 'ls'])).out).toMatch(
    /\nann +[0-9a-f]{16} +SHA256:j1vqiGj\S+ +ann@example +\d{4}-/,
  )
  const wrong = [
    [['add', 'ann', secret], 3, 'this is a private key, which stays with its owner'],
    [['add', 'ann', join(directory, 'none')], 3, 'no such file'],
    [['add', 'ann'], 64, 'tokens key add: expected TOKEN FILE'],
    [['rm', 'ann', 'bob@example'], 1, 'no key of ann is "bob@example"'],
    [['show', 'ann'], 64, 'expected one of add, ls, rm'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await admin.run(['tokens', 'key', ...argv])).toMatchObject({ code, err: expect.stringContaining(message) })
  expect((await admin.run(['tokens', 'key', 'rm', 'ann', 'ann@example'])).out).toMatch(
    /^Removed SHA256:\S+ from ann\n$/,
  )
  expect((await admin.run(['tokens', 'key', 'ls', 'ann'])).out).toContain('No SSH keys')
})
