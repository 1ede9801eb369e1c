import { expect, test } from 'vitest'
import { version } from '../../../../runtime/node/os/system/version.ts'
import type { ApplianceImport } from '../../../../src/model/lab/appliance.ts'
import { json, StandIn } from '../../../support/fleet.ts'
import { TestService } from '../../../support/service.ts'

test('an appliance is imported although a compute does not list its images', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  // It answers 404 to everything but its version.
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  await service.call('POST', '/v2/computes', compute.input({ compute_id: 'other', user: 'anna', password: 'x' }))
  const text = JSON.stringify({
    name: 'Firewall',
    category: 'firewall',
    qemu: { ram: 1024, adapters: 4, arch: 'x86_64' },
    images: [{ filename: 'fw.qcow2', version: '2', md5sum: 'ab'.repeat(16), filesize: 1000 }],
    versions: [{ name: '2', images: { hda_disk_image: 'fw.qcow2' } }],
  })
  const { images } = await service.call<ApplianceImport>('POST', '/v2/templates/import', { text })
  expect(images).toMatchObject([{ filename: 'fw.qcow2', is_missing: true }])
  expect(compute.asked).toContain('GET /v2/compute/machine-emulator/images')
})
