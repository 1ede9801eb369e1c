import { expect, test } from 'vitest'
import type { LabPlan } from '../../../../src/model/lab/topology.ts'
import { TestService } from '../../../support/service.ts'

test('an image that is missing, or is another one, is reported with its place before anything is made', async () => {
  // Of its own: a compute that cannot tell what it has, as tests of computes register them, may have every image.
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const uploaded = await service.fetch('/v2/compute/machine-emulator/images/small.img', {
    method: 'POST',
    body: 'content',
  })
  expect(uploaded.ok).toBe(true)
  const sha256 = 'ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73'
  const file = (digest: string, initrd = 'small.img') => `
lab: images
templates:
  machine: { kind: machine, platform: x86_64, image: "small.img${digest}" }
nodes:
  R1: { is: machine }
  R2: { is: machine, initrd: ${initrd} }
`
  const apply = (text: string, query: string) =>
    service.fetch(`/v2/projects/images/topology${query}`, {
      method: 'PUT',
      body: text,
      headers: { 'content-type': 'application/yaml' },
    })
  const refused = async (text: string, query: string) => {
    const answer = await apply(text, query)
    return [answer.status, ((await answer.json()) as { errors?: object[] }).errors]
  }
  for (const query of ['', '?dry_run=true']) {
    expect(await refused(file('', 'Small.img'), query)).toMatchObject([
      400,
      [{ line: 7, column: 30, path: 'nodes.R2.initrd', message: expect.stringContaining('there is no image') }],
    ])
    expect(await refused(file(`@sha256:${'0'.repeat(64)}`), query)).toMatchObject([
      400,
      [{ line: 4, column: 54, message: expect.stringContaining(`its sha256 digest is ${sha256}`) }],
    ])
  }
  expect((await service.fetch('/v2/projects/images')).status).toBe(404)
  const right = await apply(file(`@sha256:${sha256}`), '?dry_run=true')
  expect(((await right.json()) as LabPlan).steps).toHaveLength(3)
})
