import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { settingKeys } from '../../runtime/node/service/config/keys.ts'
import { loadConfig } from '../../runtime/node/service/config/load.ts'
import { startLine } from '../../runtime/node/service/config/start-line.ts'

function directory(toml?: string): string {
  const path = mkdtempSync(join(tmpdir(), 'patchbay-config-'))
  onTestFinished(() => rm(path, { recursive: true }))
  if (toml !== undefined) writeFileSync(join(path, 'config.toml'), toml)
  return path
}
const load = (argv: string[] = [], env: Record<string, string> = {}, toml?: string) => {
  const path = directory(toml)
  return loadConfig({
    argv: toml === undefined ? argv : [...argv, '--config', join(path, 'config.toml')],
    env: { XDG_CONFIG_HOME: path, ...env },
    isTerminal: true,
  })
}

/** A file that nobody else may read. */
function secretFile(text: string): string {
  const path = join(directory(), 'secret')
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

function messageOf(work: () => unknown): string {
  try {
    work()
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

test('the line that starts the service again names the labs and the settings that it has, where these are not the usual ones', () => {
  const usual = 'patchbay serve --host 0.0.0.0 --port 4091'
  expect(startLine(load(), 4091)).toBe(usual)
  expect(startLine(load(['--data', '/srv/labs', '--port', '1']), 4091)).toBe(`${usual} --data /srv/labs`)
  expect(startLine(load([], { PATCHBAY_DATA: "/srv/Ada's labs" }), 4091)).toBe(`${usual} --data '/srv/Ada'\\''s labs'`)
  expect(startLine(load([], {}, ''), 4091)).toMatch(
    /^patchbay serve --host 0\.0\.0\.0 --port 4091 --config \/\S+\/config\.toml$/,
  )
})

test('a service needs no configuration', () => {
  expect(load().current).toMatchObject({
    host: '127.0.0.1',
    port: 3080,
    local: true,
    console_host: '127.0.0.1',
    console_port_range: [5000, 10_000],
  })
})

test('flags override the environment, which overrides the file, which overrides the defaults', () => {
  const config = load(
    ['--port', '4'],
    { PATCHBAY_PORT: '3', PATCHBAY_PC_ENGINE: 'embedded' },
    'port = 2\nlog_level = "warn"\npc.engine = "vpcs"',
  )
  expect(config.current).toMatchObject({ port: 4, log_level: 'warn', pc: { engine: 'embedded', vpcs_path: 'vpcs' } })
  const source = (key: string) => config.effective().find((row) => row.key === key)?.source
  expect(source('port')).toBe('flag --port')
  expect(source('pc.engine')).toBe('variable PATCHBAY_PC_ENGINE')
  expect(source('log_level')).toMatch(/^file /)
  expect(source('host')).toBe('default')
})

test('texts become values of their types', () => {
  const env = {
    PATCHBAY_UDP_PORT_RANGE: '40000-41000',
    PATCHBAY_ALLOWED_HOSTS: 'a, b',
    PATCHBAY_ALIASES: 'vpcs=pc',
    PATCHBAY_LOCAL: 'no',
  }
  expect(load([], env).current).toMatchObject({
    udp_port_range: [40_000, 41_000],
    allowed_hosts: ['a', 'b'],
    aliases: { vpcs: 'pc' },
    local: false,
  })
  expect(load(['--no-local']).current.local).toBe(false)
})

test('a range in the file may be a text as it is shown, or a list', () => {
  const file = 'console_port_range = "5000-6000"\nudp_port_range = [42000, 43000]'
  const config = load([], {}, file)
  expect(config.current).toMatchObject({ console_port_range: [5000, 6000], udp_port_range: [42_000, 43_000] })
  const row = config.effective().find(({ key }) => key === 'console_port_range')
  expect(row).toMatchObject({ value: '5000-6000', source: expect.stringMatching(/^file .*, line 1$/) })
})

test.for<[argv: string[], env: Record<string, string>, toml: string | undefined, message: string | RegExp]>([
  [['--prot', '1'], {}, undefined, 'did you mean --port?'],
  [['--port', 'many'], {}, undefined, 'flag --port: port: expected an integer from 0 to 65535, got "many"'],
  [[], { PATCHBAY_PROT: '1' }, undefined, 'variable PATCHBAY_PROT: unknown, did you mean PATCHBAY_PORT?'],
  [
    [],
    { PATCHBAY_INSECURE: 'maybe' },
    undefined,
    'variable PATCHBAY_INSECURE: insecure: expected true or false, got "maybe"',
  ],
  [[], {}, 'prot = 1', /file .*config\.toml, line 1: prot: unknown key, did you mean port\?/],
  [[], {}, '[pc]\nengin = "vpcs"', /pc\.engin: unknown key, did you mean pc\.engine\?/],
  [[], {}, 'local = "False"', /local: expected true or false, got "False"/],
  [[], {}, 'host = "a"\nport = ', /config\.toml, line 2, column \d+: not valid TOML: .*\n {2}2 \| port = \n +\^/],
  [
    [],
    {},
    'log_level = "info\n',
    /line 1, column \d+: not valid TOML: the closing quote is missing\n {2}1 \| log_level = "info\n/,
  ],
  [[], {}, 'token = "geheim', /^(?!.*geheim)[\s\S]*line 1[\s\S]*token = \.\.\.$/],
  [[], {}, '# a\n[pc]\nengine = "vpc"', /config\.toml, line 3: pc\.engine: expected "auto"/],
  [
    [],
    {},
    'udp_port_range = "many"',
    /line 1: udp_port_range: expected a range of ports .* such as 20000-30000, got "many"/,
  ],
  [[], {}, 'aliases = { vpcs = "pcs" }', 'aliases.vpcs: expected one of pc, iou, hypervisor, machine-emulator'],
  [['--aliases', 'qemu=qemu'], {}, undefined, 'got "qemu" (did you mean machine-emulator?)'],
  [['--aliases', 'pc=iou'], {}, undefined, '"pc" is a path segment of this service'],
  [['--port'], {}, undefined, '--port: a value is missing, expected an integer from 0 to 65535'],
  [['3080'], {}, undefined, 'a flag begins with --'],
  [['--gateway=yes'], {}, undefined, '--no-gateway off'],
  [['--host', '0.0.0.0'], {}, undefined, 'is not loopback'],
  [['--user', 'x'], {}, undefined, 'user and password: set both'],
  [['--udp-port-range', '9000-11000'], {}, undefined, 'overlap'],
  [['--udp-port-range', '9000-8000'], {}, undefined, 'the first port before the last'],
])('%j %j %j is refused', ([argv, env, toml, message]) => {
  expect(() => load(argv, env, toml)).toThrow(message)
})

test('an address beyond loopback needs credentials, or an explicit setting', () => {
  expect(load(['--host', '0.0.0.0', '--token', 'x']).current).toMatchObject({ local: false, console_host: '127.0.0.1' })
  expect(load(['--host', '0.0.0.0', '--insecure']).current.host).toBe('0.0.0.0')
})

test('Cloudflare Access needs both of its settings, and counts as credentials', () => {
  const team = ['--cloudflare-access-team-domain', 'team.cloudflareaccess.com']
  expect(() => load(team)).toThrow(': set both')
  expect(() => load(['--cloudflare-access-audience', 'x'])).toThrow(': set both')
  expect(() => load(['--cloudflare-access-team-domain', 'https://team.example/'])).toThrow('expected a domain')
  const all = [...team, '--cloudflare-access-audience', 'x', '--cloudflare-access-admins', 'a@b.example, c@d.example']
  expect(load(['--host', '0.0.0.0', ...all]).current.cloudflare_access).toEqual({
    ...{ team_domain: 'team.cloudflareaccess.com', audience: 'x', role: 'operate' },
    admins: ['a@b.example', 'c@d.example'],
    organizations: {},
  })
})

test('secrets are masked', () => {
  const shown = load(['--user', 'u', '--password', 'geheim', '--token', 'tok']).effective()
  expect(JSON.stringify(shown)).not.toMatch(/geheim|"tok"/)
  expect(shown).toContainEqual({ key: 'password', value: '********', source: 'flag --password' })
})

test('secrets are refused as flags, which all users of the machine can read; the message names other ways', () => {
  for (const [flag, value, others] of [
    ['--password', 'geheim', '--password-file FILE, the variable PATCHBAY_PASSWORD, or the configuration file'],
    ['--token', 'geheim', '--token-file FILE, the variable PATCHBAY_TOKEN'],
    ['--join-token', 'geheim', '--join-token-file FILE, the variable PATCHBAY_JOIN_TOKEN'],
    ['--fleet-join-tokens', 'geheim-geheim-geheim', 'use the variable PATCHBAY_FLEET_JOIN_TOKENS'],
  ] as const) {
    const argv = ['--user', 'anna', flag, value]
    const open = (isTerminal: boolean) =>
      loadConfig({ argv, env: { XDG_CONFIG_HOME: directory(), PATCHBAY_PASSWORD: 'x' }, isTerminal })
    const message = messageOf(() => open(false))
    expect(message).toContain(`${flag} can be read by every user of this machine in the list of processes: `)
    expect(message).toContain(others)
    expect(message).not.toContain(value)
    // Who sits at a terminal is warned.
    expect(open(true).warnings).toEqual([expect.stringContaining(`${flag} can be read by every user`)])
  }
  expect(load(['--token-file', secretFile('geheim')]).warnings).toEqual([])
})

test('secrets come from files of their own, and from systemd', () => {
  const config = load(
    ['--user', 'anna', '--password-file', secretFile('geheim'), '--join', 'wss://gw.example'],
    { PATCHBAY_TOKEN_FILE: secretFile('t0ken\n') },
    `[join]\ntoken_file = "${secretFile('j0in\r\n')}"`,
  )
  expect(config.current).toMatchObject({ password: 'geheim', token: 't0ken', join: { token: 'j0in' } })
  const rows = config.effective().filter(({ key }) => ['password', 'token', 'join.token'].includes(key))
  for (const { value, source } of rows)
    expect([value, source]).toEqual(['********', expect.stringMatching(/^file \/.*secret$/)])
  const credentials = directory()
  for (const name of ['password', 'token', 'join.token'])
    writeFileSync(join(credentials, `patchbay.${name}`), `of ${name}\n`)
  const bySystemd = (argv: string[]) =>
    load(['--user', 'anna', '--join', 'wss://gw.example', ...argv], { CREDENTIALS_DIRECTORY: credentials })
  expect(bySystemd([]).current).toMatchObject({
    password: 'of password',
    token: 'of token',
    join: { token: 'of join.token' },
  })
  expect(bySystemd([]).effective()).toContainEqual({
    key: 'token',
    value: '********',
    source: 'credential patchbay.token',
  })
  // What the settings say counts before it.
  expect(bySystemd(['--token-file', secretFile('mine')]).current.token).toBe('mine')
  expect(load([], { CREDENTIALS_DIRECTORY: directory() }).current.token).toBe('')
})

test('files of secrets that cannot be used are reported by name', () => {
  expect(messageOf(() => load(['--token-file', '/nowhere']))).toMatch(
    /^token_file: \/nowhere cannot be read: there is no such file/,
  )
  expect(messageOf(() => load(['--token-file', secretFile('')]))).toContain(
    'expected one line with the secret, got nothing',
  )
  const two = messageOf(() => load(['--token-file', secretFile('geheim\nzwei')]))
  expect(two).toContain('got several')
  expect(two).not.toContain('geheim')
  expect(messageOf(() => load(['--token-file', secretFile('a')], { PATCHBAY_TOKEN: 'b' }))).toBe(
    'token and token_file are the same secret: set one of them',
  )
  const open = secretFile('geheim')
  chmodSync(open, 0o644)
  expect(load(['--token-file', open]).warnings).toEqual([
    `token_file: other users of this machine may read ${open}: chmod 600 ${open}`,
  ])
})

test('the documents have every setting', async () => {
  const { readFile } = await import('node:fs/promises')
  const page = await readFile(join(import.meta.dirname, '../../docs/configuration.md'), 'utf8')
  for (const { key, schema } of settingKeys) {
    const row = page.split('\n').find((line) => line.startsWith(`| \`${key}\` |`))
    expect([key, row]).toEqual([key, expect.stringContaining(String(schema.description))])
  }
})

test('joining a gateway needs a token, and https or loopback', () => {
  const token = ['--join-token', 'abc']
  const refused = (...argv: string[]) => {
    try {
      load(argv)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  expect(refused('--join', 'wss://gw.example')).toBe('join.url: also needs join.token, or token')
  expect(refused('--gateway', '--join', 'wss://gw.example', ...token)).toContain('a gateway runs no nodes')
  expect(refused('--join', 'gw.example', ...token)).toContain('expected the address of a gateway')
  expect(refused('--join', 'ftp://gw.example', ...token)).toContain('expected the address of a gateway')
  expect(refused('--join', 'ws://gw.example', ...token)).toContain('others could read the token')
  expect(refused('--join', 'wss://anna:secret@gw.example', ...token)).toBe(
    'join.url: must not contain a user, query or fragment; the token belongs in join.token',
  )
  for (const url of ['wss://gw.example', 'https://gw.example/lab', 'ws://127.0.0.1:3080']) {
    expect(load(['--join', url, ...token]).current.join).toMatchObject({ url, token: 'abc' })
  }
  const config = load(['--join', 'wss://gw.example', '--token', 'mine'])
  expect(config.current.join.token).toBe('mine')
  expect(config.effective()).toContainEqual({ key: 'join.token', value: '********', source: 'default' })
  expect(refused('--join-addresses', 'lab.example')).toBe('join.addresses: expected IP addresses, got "lab.example"')
  expect(refused('--join-addresses', '127.0.0.1')).toMatch(/^join.addresses: .*other computes cannot reach this one/)
  expect(config.effective()).toContainEqual({ key: 'join.url', value: 'wss://gw.example', source: 'flag --join' })
})

test('join tokens are long enough, and never shown', () => {
  const file = (tokens: string) => load([], {}, `fleet.join_tokens = ${tokens}`)
  const { current, effective } = { current: file('["0123456789abcdef"]').current, effective: load().effective() }
  expect(current.fleet.join_tokens).toEqual(['0123456789abcdef'])
  expect(effective).toContainEqual({ key: 'fleet.join_tokens', value: '[]', source: 'default' })
  const shown = file('["attic:0123456789abcdef"]').effective()
  expect(shown.find(({ key }) => key === 'fleet.join_tokens')?.value).toBe('********')
  expect(() => file('["geheim"]')).toThrow('expected a string of at least 16')
  expect(() => file('["geheim"]')).not.toThrow('geheim')
})
