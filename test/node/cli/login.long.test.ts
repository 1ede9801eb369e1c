import { access, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

const token = 'token-of-the-test'
let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ token })
  return () => service.close()
})

const fileOf = ({ home }: CommandLine): string => join(home, 'config/patchbay/login.json')

test('login stores a service and its token for all commands, logout removes both', async () => {
  const patchbay = await CommandLine.of()
  expect(await patchbay.run(['login', service.url], { input: `${token}\n` })).toEqual({
    ...{ code: 0, err: '' },
    out: `Logged in to ${service.url}; "patchbay logout" reverts this\n`,
  })
  expect((await stat(fileOf(patchbay))).mode & 0o777).toBe(0o600)
  expect((await patchbay.run(['ls'])).out).toBe(`No labs on ${service.url}\n`)
  expect(await patchbay.run(['ls', '--server', service.url])).toMatchObject({ code: 0 })
  expect((await patchbay.run(['version'])).out).toMatch(new RegExp(`^(.+)\\n\\1 at ${service.url}\\n$`))
  expect((await patchbay.run(['logout'])).out).toBe(`Logged out of ${service.url}\n`)
  await expect(access(fileOf(patchbay))).rejects.toThrow('ENOENT')
  expect(await patchbay.run(['logout'])).toMatchObject({ code: 0, out: 'Not logged in; nothing to do\n' })
  expect(await patchbay.run(['ls'])).toMatchObject({ code: 5 })
})

test.each(['', 'relative'])('the token is stored in the home directory when XDG_CONFIG_HOME is "%s"', async (base) => {
  const patchbay = await CommandLine.of()
  const login = await patchbay.run(['login', service.url], { input: token, env: { XDG_CONFIG_HOME: base } })
  expect(login).toMatchObject({ code: 0 })
  expect((await stat(join(patchbay.home, '.config/patchbay/login.json'))).mode & 0o777).toBe(0o600)
})

test('a refused token is not stored, and the stored one stays', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.run(['login', service.url], { input: token })
  const before = await readFile(fileOf(patchbay), 'utf8')
  const wrong = [
    [['login', service.url], 'another-token', 5, 'does not accept this token; nothing was saved'],
    [['login', service.url], '', 64, 'expected a token on standard input, got none'],
    [['login', service.url], 'a token', 64, 'expected a token on standard input: letters'],
    [['login', 'http://127.0.0.1:1'], token, 5, 'cannot be reached'],
    [['login', 'ftp://127.0.0.1'], token, 64, 'URL: expected an address such as'],
    [['login', service.url, '--token', token], '', 64, 'unknown flag --token'],
  ] as const
  for (const [argv, input, code, message] of wrong)
    expect(await patchbay.run(argv, { input })).toMatchObject({ code, out: '', err: expect.stringContaining(message) })
  expect(await readFile(fileOf(patchbay), 'utf8')).toBe(before)
})

test('flags and variables override the stored login, and a token is sent to its own service only', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.run(['login', service.url], { input: token })
  const other = await TestService.start({ token: 'another-token' })
  expect(await patchbay.run(['ls', '--server', other.url])).toMatchObject({
    code: 5,
    err: expect.stringContaining('run "patchbay login URL"'),
  })
  const env = { PATCHBAY_SERVER: other.url, PATCHBAY_TOKEN: 'another-token' }
  expect((await patchbay.run(['ls'], { env })).out).toBe(`No labs on ${other.url}\n`)
  expect(await patchbay.run(['ls'], { env: { PATCHBAY_TOKEN: 'another-token' } })).toMatchObject({ code: 5 })
})

test('a service without credentials is stored without a token; its URL may come from a variable or the last login', async () => {
  const patchbay = await CommandLine.of()
  expect(await patchbay.run(['login'])).toMatchObject({ code: 64, err: expect.stringContaining('expected URL') })
  const open = await TestService.start({ 'pc.engine': 'embedded' })
  const first = await patchbay.run(['login'], { env: { PATCHBAY_SERVER: open.url } })
  expect(first).toMatchObject({ code: 0, out: expect.stringContaining('which needs no token') })
  expect(await patchbay.json(['login'])).toMatchObject({ ok: true, server: open.url, has_token: false })
  expect((await patchbay.run(['ls'])).out).toBe(`No labs on ${open.url}\n`)
})

test('a damaged file is reported, and removed by logout', async () => {
  const patchbay = await CommandLine.of()
  await patchbay.run(['login', service.url], { input: token })
  await writeFile(fileOf(patchbay), '{"server":')
  expect(await patchbay.run(['ls'])).toMatchObject({ code: 1, err: expect.stringContaining('"patchbay logout"') })
  expect(await patchbay.run(['logout'])).toMatchObject({ code: 0 })
  expect(await patchbay.run(['ls'])).toMatchObject({ code: 5 })
})
