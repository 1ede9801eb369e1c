import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage, Shell } from '../support/container-lab.ts'
import { expectTraces, leaveTraces, withFile } from '../support/container-traces.ts'
import { portOf } from '../support/gateway-lab.ts'
import { start } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

testWith(await requireContainers())(
  'what a container has written moves to another compute with its lab, and with its snapshots',
  async () => {
    const [gateway, a, b] = await Promise.all([
      TestService.start({ gateway: true, 'rate_limit.per_s': 0 }),
      TestService.start(),
      TestService.start(),
    ])
    for (const [compute_id, service] of Object.entries({ a, b })) {
      await addImage(service)
      const input = { compute_id, protocol: 'http', host: '127.0.0.1', port: portOf(service) }
      await gateway.call('POST', '/v2/computes', input)
    }
    await gateway.call('POST', '/v2/projects', { name: 'lab', compute_id: 'a' })
    const lab = '/v2/projects/lab'
    const node = `${lab}/nodes/C1`
    await gateway.call('POST', `${lab}/nodes`, {
      ...{ name: 'C1', node_type: 'container', compute_id: 'a', properties: { image: 'busybox.tar', ...withFile } },
    })
    await start(gateway, node)
    await leaveTraces(gateway, node)
    await gateway.call('POST', `${node}/stop`)
    const { snapshot_id } = await gateway.call<LabSnapshot>('POST', `${lab}/snapshots`, { name: 'first' })
    await start(gateway, node)
    await (await Shell.open(gateway, node)).run('echo later >/root/kept; chmod 4640 /root/kept; sync')
    await gateway.call('POST', `${node}/stop`)
    const { job_id } = await gateway.call<LabJob>('POST', '/v2/computes/a/drain')
    const job = () => gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)
    await expect.poll(async () => (await job()).status, { timeout: 2 * hangMs }).not.toBe('running')
    expect(await job()).toMatchObject({ status: 'done', done: 1, reason: null })
    expect(await gateway.call<LabNode>('GET', node)).toMatchObject({ compute_id: 'b' })
    await expectTraces(gateway, node, 'later')
    await gateway.call('POST', `${lab}/snapshots/${snapshot_id}/restore`)
    const { project_id, node_id } = await gateway.call<LabNode>('GET', node)
    await expectTraces(b, `/v2/compute/projects/${project_id}/container/nodes/${node_id}`)
    expect(await readdir(join(a.data, 'run/containers/nodes'))).toEqual([])
  },
)
