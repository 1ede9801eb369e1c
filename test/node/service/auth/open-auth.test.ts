import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openAuth } from '../../../../runtime/node/service/auth/open-auth.ts'
import { hasAdminToken } from '../../../../runtime/node/service/config/admin-token.ts'
import { loadConfig } from '../../../../runtime/node/service/config/load.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { openRecords } from '../../../support/service-records.ts'

async function open(argv: string[], data?: string, isGateway = false) {
  const directory = data ?? (await freshDirectory())
  const config = loadConfig({
    argv: ['--data', directory, ...argv],
    env: { XDG_CONFIG_HOME: join(directory, 'none') },
    isTerminal: true,
  })
  const { records, said } = await openRecords({ data: directory })
  const auth = await openAuth({ config, log: records.log, records, isGateway })
  return { ...auth, directory, said }
}

test('without configured credentials no request needs a token, and tokens can be made; a warning says so when some are stored', async () => {
  const { tokens, directory } = await open(['--token', 'x'])
  const { token } = (await tokens?.create({ name: 'ci', role: 'read' })) ?? { token: '' }
  const none = await open([], directory)
  expect([none.verifier, none.said.length]).toEqual([undefined, 1])
  expect(await none.tokens?.list()).toMatchObject([{ name: 'ci' }])
  expect((await open([])).said).toEqual([])
  const again = await open(['--user', 'anna', '--password', 'geheim'], directory)
  const request = new Request('http://localhost/')
  expect(await again.verifier?.(request, token)).toMatchObject({ name: 'ci', role: 'read' })
  expect(await again.verifier?.(request, undefined)).toBeUndefined()
})

test('a token of an administrator is enough to listen beyond loopback, where every request needs one', async () => {
  const { tokens, directory } = await open([])
  await tokens?.create({ name: 'student', role: 'operate' })
  await expect(open(['--host', '0.0.0.0'], directory)).rejects.toThrow('is not loopback')
  const { token } = (await tokens?.create({ name: 'teacher', role: 'admin' })) ?? { token: '' }
  const outside = await open(['--host', '0.0.0.0'], directory)
  const request = new Request('http://localhost/')
  expect(await outside.verifier?.(request, token)).toMatchObject({ name: 'teacher', role: 'admin' })
  expect(await outside.verifier?.(request, undefined)).toBeUndefined()
  // A name that looks like an address of this machine may lead anywhere.
  const named = await open(['--host', '127.example'], directory)
  expect(await named.verifier?.(request, undefined)).toBeUndefined()
  expect(named.verifier).toBeDefined()
  const later = await open([], await freshDirectory())
  await later.tokens?.create({ name: 'teacher', role: 'admin', expires_in_s: 1 })
  const over = Date.now() + 2000
  expect([hasAdminToken(directory, over), hasAdminToken(later.directory, over)]).toEqual([true, false])
})

test('a service without credentials starts with a file of tokens that it cannot read, and makes none', async () => {
  const directory = await freshDirectory()
  await writeFile(join(directory, 'tokens.json'), JSON.stringify({ version: 2, tokens: {} }))
  const { tokens, said } = await open([], directory)
  expect(tokens).toBeUndefined()
  expect(said.join()).toContain('tokens cannot be made')
})

test('Cloudflare Access alone is enough to have tokens', async () => {
  const flags = ['--cloudflare-access-team-domain', 'team.example', '--cloudflare-access-audience', 'x']
  const { tokens, verifier } = await open(flags)
  const { token } = (await tokens?.create({ name: 'ci', role: 'read' })) ?? { token: '' }
  const wrong = new Request('http://localhost/', { headers: { 'cf-access-jwt-assertion': 'x' } })
  expect(await verifier?.(wrong, token)).toMatchObject({ name: 'ci' })
  expect(await verifier?.(wrong, undefined)).toBeUndefined()
})

test('only a gateway limits requests by default', async () => {
  const [compute, gateway, told] = await Promise.all([
    open([]),
    open([], undefined, true),
    open(['--rate-limit-per-s', '1', '--rate-limit-burst', '2']),
  ])
  const many =
    ({ rateLimit }: typeof compute, count: number) =>
    () => {
      for (let it = 0; it < count; it++) rateLimit.consume('token:1')
    }
  expect(many(compute, 10_000)).not.toThrow()
  expect(many(gateway, 300)).not.toThrow()
  expect(many(gateway, 10_000)).toThrow('may send 100 a second')
  expect(many(told, 2)).not.toThrow()
  expect(many(told, 100)).toThrow('may send 1 a second')
})
