import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'vitest'
import { isMadeElsewhere } from '../../support/archive-gateway.ts'
import { portOf } from '../../support/gateway-lab.ts'
import { TestService } from '../../support/service.ts'

const embedded = { 'pc.engine': 'embedded' }

it('makes a closed lab from its archive on another compute, when its compute is gone', async () => {
  const [gateway, a, b] = await Promise.all([
    TestService.start({ gateway: true, 'fleet.keep_archives': true, 'rate_limit.per_s': 0 }),
    TestService.start(embedded),
    TestService.start(embedded),
  ])
  for (const [compute_id, service] of Object.entries({ a, b })) {
    const input = { compute_id, protocol: 'http', host: '127.0.0.1', port: portOf(service) }
    await gateway.call('POST', '/v2/computes', input)
  }
  const withArchives = {
    url: gateway.url,
    headers: {},
    call: <T>(method: string, path: string, body?: unknown) => gateway.call<T>(method, path, body),
    send: (path: string, init?: RequestInit) => gateway.fetch(path, init),
    archives: () => readdir(join(gateway.data, 'archives')),
  }
  await isMadeElsewhere(withArchives, { a, b }, (id) => `${id}.gns3project`)
})
