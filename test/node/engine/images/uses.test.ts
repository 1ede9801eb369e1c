import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ImageUser } from '../../../../runtime/node/engine/images/users.ts'
import { bodyOf } from '../../../support/bodies.ts'
import { kind, openImages } from '../../../support/images.ts'

const campus = '11111111-2222-4333-8444-555555555555'
const branch = '21111111-2222-4333-8444-555555555555'
const node = (name: string, project_id: string, ...images: string[]): ImageUser => {
  return { kind, name, project_id, projectPath: `/no/such/directory/${project_id}`, images }
}

test('the uses of images list nodes and projects, also for other names of the files', async () => {
  const nodes: ImageUser[] = []
  const { images, own } = await openImages({ nodes: () => nodes })
  for (const name of ['used', 'free']) await images.write(kind, name, bodyOf(name), { digests: [] })
  await symlink(join(own, 'used'), join(own, 'link'))
  nodes.push(
    node('R1', campus, 'used', 'used'),
    node('R2', campus, 'link'),
    node('R1', branch, join(own, 'used')),
    node('R3', branch, 'missing'),
    { ...node('I1', branch, 'free'), kind: 'iou' },
  )
  const users = [
    { project_id: campus, nodes: ['R1', 'R2'] },
    { project_id: branch, nodes: ['R1'] },
  ]
  expect((await images.uses(kind)).toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
    { path: 'free', used_by: [] },
    { path: 'link', used_by: users },
    { path: 'used', used_by: users },
  ])
})
