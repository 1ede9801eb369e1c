import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { LabNode } from '../../src/model/lab/node.ts'
import { CommandLine } from '../support/command-line.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage, Shell } from '../support/container-lab.ts'
import { expectTraces, leaveTraces, withFile } from '../support/container-traces.ts'
import { start } from '../support/lab.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

testWith(await requireContainers())('an image is made of a container, and of one that was made of it', async () => {
  const service = await TestService.start()
  await addImage(service)
  await service.call('POST', '/v2/projects', { name: 'lab' })
  const create = (name: string, image: string, settings: object = {}) =>
    service.call<LabNode>('POST', '/v2/projects/lab/nodes', {
      ...{ name, node_type: 'container', properties: { image, adapters: 0, ...settings } },
    })
  const at = (name: string) => `/v2/projects/lab/nodes/${name}`
  await create('C1', 'busybox.tar', withFile)
  await start(service, at('C1'))
  await leaveTraces(service, at('C1'))
  // It runs on.
  const shell = await Shell.open(service, at('C1'))
  const patchbay = await CommandLine.of({ server: service.url })
  expect(await patchbay.run(['images', 'make', 'lab/C1', 'one.tar'])).toMatchObject({
    ...{ code: 0, out: expect.stringContaining('Made one.tar') },
  })
  expect(await shell.run('echo on')).toBe('on')
  await create('C2', 'one.tar')
  await expectTraces(service, at('C2'))
  await (await Shell.open(service, at('C2'))).run('rm -r /root; echo second >/second; sync')
  await service.call('POST', `${at('C2')}/stop`)
  const made = await service.call('POST', `${at('C2')}/image`, { name: 'two.tar' })
  expect(made).toEqual({ path: 'two.tar', filesize: expect.any(Number) })
  await create('C3', 'two.tar')
  await start(service, at('C3'))
  const other = await Shell.open(service, at('C3'))
  expect(await other.run('cat /second /etc/app.conf; ls -d /root')).toMatch(/^second\s+changed\s+ls: \/root: No such/)

  const refused = async (name: string, image: string) => {
    const answer = await service.fetch(`${at(name)}/image`, { method: 'POST', body: JSON.stringify({ name: image }) })
    return [answer.status, await answer.text()]
  }
  expect(await refused('C2', 'two.tar')).toEqual([409, expect.stringContaining('already exists')])
  expect(await refused('C2', '../two.tar')).toEqual([403, expect.stringContaining('../two.tar')])
  await service.call('POST', '/v2/projects/lab/nodes', { name: 'H1', node_type: 'hub' })
  expect(await refused('H1', 'three.tar')).toEqual([409, expect.stringContaining('expected a container')])
  expect(await readdir(join(service.data, 'images/container'))).toEqual(
    expect.arrayContaining(['busybox.tar', 'one.tar', 'two.tar']),
  )
  const unpacked = await readdir(join(service.data, 'run/containers/images'))
  expect(unpacked.filter((it) => it.startsWith('made'))).toEqual([])
})
