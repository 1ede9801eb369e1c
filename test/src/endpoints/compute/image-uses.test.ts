import { expect, test } from 'vitest'
import { imageEndpoints } from '../../../../src/endpoints/compute/images.ts'
import type { ImageUse } from '../../../../src/model/image.ts'
import { ProjectAccess } from '../../../../src/server/access/project-access.ts'

const mine = '11111111-2222-4333-8444-555555555555'
const theirs = '21111111-2222-4333-8444-555555555555'
const used_by = [mine, theirs].map((project_id) => ({ project_id, nodes: ['R1'] }))
const uses: ImageUse[] = [
  { path: 'a', used_by, compute_ids: ['c0'] },
  { path: 'b', compute_ids: ['c1'] },
]

/** What a client with a token for these projects is told; undefined: for all. */
async function toldTo(projects: readonly string[] | undefined): Promise<unknown> {
  const endpoint = imageEndpoints.find(({ path }) => path === '/v2/compute/iou/image_uses')
  const access = new ProjectAccess({ name: 'me', projects } as never, undefined)
  const answer = await endpoint?.handle(
    {} as never,
    { agent: { images: { uses: async () => uses } }, projects: access } as never,
  )
  return (answer as { body?: unknown }).body
}

test('a token for some projects does not see which nodes of others need an image', async () => {
  expect(await toldTo([mine])).toEqual([{ path: 'a', used_by: used_by.slice(0, 1), compute_ids: ['c0'] }, uses[1]])
  expect(await toldTo(undefined)).toEqual(uses)
})

test('it does not see it by a request that is handed on: the endpoint checks projects itself', () => {
  const scopes = imageEndpoints.filter(({ path }) => path.endsWith('/image_uses')).map(({ scope }) => scope)
  expect(new Set(scopes)).toEqual(new Set(['own']))
})
