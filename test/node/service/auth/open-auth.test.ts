import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openAuth } from '../../../../runtime/node/service/auth/open-auth.ts'
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

test('without configured credentials there are no tokens, and a warning says so when some are stored', async () => {
  const { tokens, directory } = await open(['--token', 'x'])
  const { token } = (await tokens?.create({ name: 'ci', role: 'read' })) ?? { token: '' }
  const none = await open([], directory)
  expect([none.tokens, none.verifier, none.said.length]).toEqual([undefined, undefined, 1])
  expect((await open([])).said).toEqual([])
  const again = await open(['--user', 'anna', '--password', 'geheim'], directory)
  const request = new Request('http://localhost/')
  expect(await again.verifier?.(request, token)).toMatchObject({ name: 'ci', role: 'read' })
  expect(await again.verifier?.(request, undefined)).toBeUndefined()
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
