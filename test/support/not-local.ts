import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'

const projects = '/v2/compute/projects'

/** Sees that a gateway, whose computes of these ids are in local mode, does as it says: `local: false`. `ask`: as its administrator. */
export async function expectNotLocal(
  ask: (method: string, path: string, body?: unknown) => Promise<Response>,
  computes: readonly string[],
): Promise<void> {
  const outside = await mkdtemp(join(tmpdir(), 'patchbay-outside-'))
  onTestFinished(() => rm(outside, { recursive: true, force: true }))
  for (const path of ['/v1/version', '/v2/compute/version'])
    expect(await (await ask('GET', path)).json()).toMatchObject({ local: false })
  for (const path of ['/v1/config/reload', '/v2/compute/config/reload']) {
    const answer = await ask('POST', path, {})
    expect([path, answer.status, await answer.json()]).toMatchObject([path, 403, { status: 403 }])
  }
  for (const compute_id of computes) {
    const made = await ask('POST', projects, { name: `lab ${compute_id}`, compute_id })
    const { project_id } = (await made.json()) as { project_id: string }
    for (const path of [`/v1/projects/${project_id}`, `${projects}/${project_id}`]) {
      const answer = await ask('PUT', path, { path: join(outside, 'lab') })
      expect([compute_id, path, answer.status]).toEqual([compute_id, path, 403])
    }
    for (const path of ['/v1/projects', projects]) {
      const answer = await ask('POST', path, { name: 'x', path: join(outside, 'lab') })
      expect([compute_id, path, answer.status]).toEqual([compute_id, path, 403])
    }
  }
  expect(await readdir(outside)).toEqual([])
}
