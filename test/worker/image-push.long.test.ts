import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { breakingWay } from '../support/breaking-way.ts'
import { CommandLine } from '../support/command-line.ts'
import { TestService } from '../support/service.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

test('patchbay images push through the Worker goes on after lost connections, to all computes', async () => {
  const gateway = await WorkerGateway.start()
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const [near, far] = await Promise.all([
    TestService.start({ 'pc.engine': 'embedded' }),
    TestService.start({
      ...{ 'pc.engine': 'embedded' },
      ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
    }),
  ])
  await gateway.untilConnected((await readFile(join(far.data, 'compute-id'), 'utf8')).trim())
  const port = Number(new URL(near.url).port)
  await gateway.call('POST', '/v2/computes', { compute_id: 'near', protocol: 'http', host: '127.0.0.1', port })

  const server = await breakingWay(gateway.url, [5 << 20, 6 << 20, 23 << 20])
  const patchbay = await CommandLine.of({ server, token: adminToken })
  // More than one part.
  const disk = Buffer.concat([Buffer.from('QFI\xfb', 'latin1'), randomBytes(17 << 20)])
  await writeFile(join(patchbay.home, 'disk.qcow2'), disk)
  expect(await patchbay.run(['images', 'push', 'disk.qcow2'])).toMatchObject({ code: 0 })
  for (const { data } of [near, far])
    expect((await readFile(join(data, 'images/machine-emulator/disk.qcow2'))).equals(disk)).toBe(true)
  expect(await patchbay.json(['images', 'push', 'disk.qcow2'])).toMatchObject({ images: [{ sent: 0 }] })
})
