import { randomUUID } from 'node:crypto'
import { readdir, watch } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage, Shell } from '../support/container-lab.ts'
import { expectTraces, leaveTraces, withFile } from '../support/container-traces.ts'
import { start, status } from '../support/lab.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const containers = await requireContainers()

async function exportOf(service: TestService, lab: string): Promise<ArrayBuffer> {
  const answer = await service.fetch(`${lab}/export`)
  expect(answer.status).toBe(200)
  return answer.arrayBuffer()
}

/** Resolves when a file of this name is made in a directory. */
async function watchFor(directory: string, name: string): Promise<void> {
  for await (const { filename } of watch(directory)) if (filename === name) return
}

describe('what a container has written', () => {
  let service: TestService
  beforeAll(async () => {
    if (containers.skip) return
    service = await TestService.startForAll()
    await addImage(service)
  })
  afterAll(() => service?.close())

  /** A lab with one container, which has left its traces and runs. */
  async function createLab(): Promise<{ lab: string; node: string; id: string }> {
    const { project_id } = await service.call<LabProject>('POST', '/v2/projects', { name: `L${randomUUID()}` })
    const lab = `/v2/projects/${project_id}`
    const properties = { image: 'busybox.tar', ...withFile }
    const input = { name: 'C1', node_type: 'container', properties }
    const { node_id } = await service.call<LabNode>('POST', `${lab}/nodes`, input)
    const node = `${lab}/nodes/${node_id}`
    await start(service, node)
    await leaveTraces(service, node)
    return { lab, node, id: project_id }
  }
  const only = async (lab: string) => {
    const [node] = await service.call<LabNode[]>('GET', `${lab}/nodes`)
    return `${lab}/nodes/${node?.node_id}`
  }
  const wordOf = async (node: string) => (await Shell.open(service, node)).run('cat /root/kept')
  const layers = () => readdir(join(service.data, 'run/containers/nodes'))

  testWith(containers)('is in copies of its node and of its lab', async () => {
    const { lab, node } = await createLab()
    // Of a node that runs, too.
    const copy = await service.call<LabNode>('POST', `${node}/duplicate`, { x: 1, y: 1 })
    await expectTraces(service, `${lab}/nodes/${copy.node_id}`)
    await service.call('POST', `${lab}/nodes/stop`)
    await service.call('DELETE', `${lab}/nodes/${copy.node_id}`)
    const { project_id } = await service.call<LabProject>('POST', `${lab}/duplicate`, { name: `L${randomUUID()}` })
    await service.call('POST', `/v2/projects/${project_id}/open`)
    await expectTraces(service, await only(`/v2/projects/${project_id}`))
    await expectTraces(service, node)
  })

  testWith(containers)('is as it was after a snapshot is restored, which started it again', async () => {
    const { lab, node } = await createLab()
    const shell = await Shell.open(service, node)
    const running = await service.call<LabSnapshot>('POST', `${lab}/snapshots`, { name: 'running' })
    await shell.run('echo later >/root/kept; echo later >/etc/app.conf; touch /var/new')
    const restore = (it: LabSnapshot) => service.call('POST', `${lab}/snapshots/${it.snapshot_id}/restore`)
    await restore(running)
    expect(await status(service, node)).toBe('started')
    await expectTraces(service, node)
    await (await Shell.open(service, node)).run('echo later >/root/kept; sync')
    await service.call('POST', `${node}/stop`)
    const stopped = await service.call<LabSnapshot>('POST', `${lab}/snapshots`, { name: 'stopped' })
    await restore(running)
    expect(await wordOf(node)).toBe('kept')
    await restore(stopped)
    await start(service, node)
    expect(await wordOf(node)).toBe('later')
  })

  testWith(containers)('is not in a snapshot from before it was written', async () => {
    const { lab, node } = await createLab()
    const other = await service.call<LabNode>('POST', `${lab}/nodes`, {
      ...{ name: 'C2', node_type: 'container', properties: { image: 'busybox.tar', adapters: 0 } },
    })
    const path = `${lab}/nodes/${other.node_id}`
    const { snapshot_id } = await service.call<LabSnapshot>('POST', `${lab}/snapshots`, { name: 'before' })
    await start(service, path)
    await (await Shell.open(service, path)).run('echo later >/root/kept')
    await service.call('POST', `${lab}/snapshots/${snapshot_id}/restore`)
    await start(service, path)
    expect(await (await Shell.open(service, path)).run('cat /root/kept')).toContain('No such file')
    expect(await wordOf(node)).toBe('kept')
  })

  testWith(containers)('is in archives, and on another service after their import', async () => {
    const { lab, node, id: project } = await createLab()
    const files = `/v2/compute/projects/${project}/files?complete=true`
    // A list without it would be complete in name only.
    await expect(service.call('GET', files)).rejects.toThrow('C1 is running')
    await service.call('POST', `${node}/stop`)
    const archive = await exportOf(service, lab)
    // The same layer, and not one made of the archive.
    await expectTraces(service, node)
    const other = await TestService.start()
    await addImage(other)
    const id = randomUUID()
    const answer = await other.fetch(`/v2/projects/${id}/import?name=imported`, { method: 'POST', body: archive })
    expect(answer.status).toBe(201)
    await other.call('POST', `/v2/projects/${id}/open`)
    const [made] = await other.call<LabNode[]>('GET', `/v2/projects/${id}/nodes`)
    await expectTraces(other, `/v2/projects/${id}/nodes/${made?.node_id}`)
  })

  testWith(containers)(
    'comes back with a deleted node, and with a closed lab of a service that was ended',
    async () => {
      const own = await TestService.start()
      await addImage(own)
      const { project_id } = await own.call<LabProject>('POST', '/v2/projects', { name: 'closed' })
      const lab = `/v2/projects/${project_id}`
      const properties = { image: 'busybox.tar', ...withFile }
      const { node_id } = await own.call<LabNode>('POST', `${lab}/nodes`, {
        ...{ name: 'C1', node_type: 'container', properties },
      })
      const node = `${lab}/nodes/${node_id}`
      await start(own, node)
      await leaveTraces(own, node)
      await own.call('DELETE', node)
      await own.call('POST', `${lab}/undo`)
      await expectTraces(own, node)
      await own.call('POST', `${lab}/close`)
      expect(await readdir(join(own.data, 'run/containers/nodes'))).toEqual([])
      await own.kill('SIGKILL')
      await own.restart()
      await own.call('POST', `${lab}/open`)
      await expectTraces(own, node)
      await own.call('DELETE', lab)
      expect(await readdir(join(own.data, 'run/containers/nodes'))).toEqual([])
    },
  )

  testWith(containers)('is whole after the service was killed while it was written to an archive', async () => {
    const own = await TestService.start()
    await addImage(own)
    const { project_id } = await own.call<LabProject>('POST', '/v2/projects', { name: 'killed' })
    const lab = `/v2/projects/${project_id}`
    const properties = { image: 'busybox.tar', ...withFile }
    const { node_id } = await own.call<LabNode>('POST', `${lab}/nodes`, {
      ...{ name: 'C1', node_type: 'container', properties },
    })
    const node = `${lab}/nodes/${node_id}`
    await start(own, node)
    await leaveTraces(own, node)
    await (await Shell.open(own, node)).run('dd if=/dev/zero of=/large bs=1M count=300; sync')
    await own.call('POST', `${node}/stop`)
    const directory = join(own.data, 'projects', project_id, 'project-files/container', node_id)
    const half = watchFor(directory, 'layer.tar.part')
    const failed = exportOf(own, lab).catch(() => undefined)
    await half
    await own.kill('SIGKILL')
    await failed
    expect(await readdir(directory)).not.toContain('layer.tar')
    await own.restart()
    await expectTraces(own, node)
    expect((await readdir(directory)).filter((it) => it.startsWith('layer'))).toEqual([])
    await own.call('POST', `${node}/stop`)
    expect((await exportOf(own, lab))?.byteLength).toBeGreaterThan(300_000)
    expect((await readdir(directory)).filter((it) => it.startsWith('layer'))).toEqual(['layer.tar'])
  })

  testWith(containers)('is gone with its lab', async () => {
    const { lab, node } = await createLab()
    expect(await layers()).toContain(node.split('/').at(-1))
    await service.call('DELETE', lab)
    expect(await layers()).not.toContain(node.split('/').at(-1))
  })
})
