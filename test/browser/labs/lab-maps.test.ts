import { expect, test } from 'vitest'
import { LabMaps } from '../../../runtime/browser/labs/lab-maps.ts'
import type { LabTopology, Patchbay } from '../../../src/client/patchbay.ts'

const lab = { project_id: 'a', revision: 1 }
const wanted = new AbortController().signal

/** The maps of a service, and what was read of it. `answer`: of each reading. */
function mapsOf(answer: (id: string) => Promise<Partial<LabTopology>>) {
  const read: string[] = []
  const client = {
    call(name: string, { params }: { params: { project_id: string } }) {
      expect(name).toBe('GET /v2/projects/{project_id}/topology')
      read.push(params.project_id)
      return answer(params.project_id)
    },
  }
  return { maps: new LabMaps(client as unknown as Patchbay), read }
}
const topology = (revision: number, ...names: string[]) =>
  ({ revision, nodes: names.map((name) => ({ name })), links: [], segments: [] }) as unknown as LabTopology

test('a map is read once, and again after an edit', async () => {
  let revision = 1
  const { maps, read } = mapsOf(async () => topology(revision, `of ${revision}`))
  expect(maps.known('a')).toBeUndefined()
  expect(await maps.read(lab, wanted)).toMatchObject({ nodes: [{ name: 'of 1' }] })
  await maps.read(lab, wanted)
  expect(read).toEqual(['a'])
  revision = 2
  expect(await maps.read({ ...lab, revision }, wanted)).toMatchObject({ nodes: [{ name: 'of 2' }] })
  expect(maps.known('a')).toMatchObject({ nodes: [{ name: 'of 2' }] })
})

test('of a list that is scrolled, two maps are read at a time, and none of a card that is out of view by then', async () => {
  const answers: (() => void)[] = []
  const { maps, read } = mapsOf((id) => new Promise((resolve) => answers.push(() => resolve(topology(1, `of ${id}`)))))
  const passed = new AbortController()
  const of = (project_id: string, over = wanted) => maps.read({ project_id, revision: 1 }, over)
  const all = [of('a'), of('b'), of('c', passed.signal), of('d')]
  await Promise.resolve()
  expect(read).toEqual(['a', 'b'])
  passed.abort()
  for (const answer of answers.splice(0)) answer()
  await expect.poll(() => read).toEqual(['a', 'b', 'd'])
  for (const answer of answers) answer()
  expect((await Promise.all(all)).map((map) => map?.nodes[0]?.name)).toEqual(['of a', 'of b', undefined, 'of d'])
})

test('a map that cannot be read is as it was, and is read again when it is wanted', async () => {
  let isThere = true
  const { maps, read } = mapsOf(async () => {
    if (!isThere) throw new Error('away')
    return topology(1, 'PC1')
  })
  const map = await maps.read(lab, wanted)
  isThere = false
  expect(await maps.read({ ...lab, revision: 2 }, wanted)).toBe(map)
  await maps.read({ ...lab, revision: 2 }, wanted)
  expect(read).toHaveLength(3)
})
