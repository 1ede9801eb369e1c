import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { AccessToken } from '../../src/model/access/access-token.ts'
import type { Compute } from '../../src/model/compute.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import { freshDirectory } from '../support/directory.ts'
import { type OldWorkerState, type OldWorkerVersion, unpackOldWorker } from '../support/old-worker.ts'
import { within } from '../support/organizations.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

// Services and workerd are started.
vi.setConfig({ testTimeout: 120_000 })

const projects = '/v2/compute/projects'
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

/** The present Worker on what that of an earlier version stored. */
async function upgraded(version: OldWorkerVersion): Promise<{ gateway: WorkerGateway; state: OldWorkerState }> {
  const data = await freshDirectory()
  const state = await unpackOldWorker(version, data)
  const gateway = await WorkerGateway.startForAll(data)
  onTestFinished(() => gateway.stop())
  return { gateway, state }
}

const versions: Record<OldWorkerVersion, string> = {
  '0.1.0': 'release 0.1.0',
  fleet: 'the version with the tunnels of all computes in one object',
}
for (const [version, name] of Object.entries(versions) as [OldWorkerVersion, string][])
  test(`the Worker reads the data that ${name} stored: computes with their passwords, placements, tokens, and computes that join`, async () => {
    const { gateway, state } = await upgraded(version)
    const { tokens, joinedId, lab, organization } = state

    // What it showed of its computes, it shows; and what is new has its default.
    const computes = () => gateway.call<Compute[]>('GET', '/v2/computes')
    const lasting = ['compute_id', 'name', 'protocol', 'host', 'port', 'user'] as const
    const bare = (all: readonly Record<string, unknown>[]) => all.map((it) => lasting.map((name) => it[name]))
    const shown = await computes()
    expect(bare(shown)).toEqual(bare(state.shown))
    for (const it of shown) expect(it).toMatchObject({ accepts_projects: true, weight: 1 })

    // Both have each project: only a placement that was kept tells which one counts.
    const pc = { 'pc.engine': 'embedded' }
    const near = await TestService.start({ ...pc, ...state.credentials })
    const other = await TestService.start({ ...pc })
    const { user, password } = state.credentials
    const asUser = { authorization: `Basic ${btoa(`${user}:${password}`)}` }
    const theirs = organization === undefined ? [] : [organization.project]
    for (const project_id of [...Object.values(state.projects), ...theirs]) {
      const make = (service: TestService, name: string) =>
        service.fetch(projects, { method: 'POST', headers: asUser, body: JSON.stringify({ project_id, name }) })
      expect([(await make(near, 'at near')).status, (await make(other, 'at the other')).status]).toEqual([201, 201])
    }
    // The password that it stored lets it in.
    await gateway.call('PUT', '/v2/computes/near', { port: Number(new URL(near.url).port) })
    await gateway.untilConnected('near')

    const operate = bearer(tokens.operate)
    const at = async (project: string, init = operate) => {
      const answer = await gateway.fetch('GET', `${projects}/${project}`, undefined, init)
      return [answer.status, ((await answer.json()) as { name?: string }).name]
    }
    expect(await at(state.projects.near)).toEqual([200, 'at near'])
    expect(await at(state.projects.near, bearer(tokens.read))).toEqual([200, 'at near'])
    expect(await at(state.projects.joined)).toEqual([503, undefined])

    // An organization has its own, which the others do not see; and labs are those that there were.
    if (organization !== undefined) {
      const { id, token, project } = organization
      const port = Number(new URL(near.url).port)
      const changed = await gateway.fetch('PUT', '/v2/computes/near', { port }, { headers: within(id) })
      expect(changed.status).toBe(200)
      expect(await at(project, bearer(token))).toEqual([200, 'at near'])
      const seen = await gateway.fetch('GET', '/v2/computes', undefined, bearer(token))
      expect(((await seen.json()) as Compute[]).map(({ name }) => name)).toEqual(['The near one'])
    }
    if (lab !== undefined) {
      const labs = await gateway.call<LabProject[]>('GET', '/v2/projects')
      expect(labs.find(({ project_id }) => project_id === lab.id)?.name).toBe('old lab')
      const nodes = await gateway.call<LabNode[]>('GET', `/v2/projects/${lab.id}/nodes`)
      expect(nodes.map(({ name, compute_id }) => [name, compute_id])).toEqual([[lab.node, 'near']])
    }

    // Tokens have their roles; one that was revoked has none.
    const create = async (token: string) =>
      (await gateway.fetch('POST', projects, { name: 'new', compute_id: 'near' }, bearer(token))).status
    expect(await Promise.all([tokens.operate, tokens.read, tokens.revoked].map(create))).toEqual([201, 403, 401])
    const listed = await gateway.call<AccessToken[]>('GET', '/v2/tokens')
    expect(listed.map(({ name }) => name).sort()).toEqual(['ci', 'lab', 'viewer'])

    // The compute that had joined comes again with its token; another one does not get its place.
    await other.end()
    await writeFile(join(other.data, 'compute-id'), `${joinedId}\n`)
    await rm(join(other.data, 'compute-id.bak'), { force: true })
    const joining = { 'join.url': gateway.url.replace('http', 'ws'), 'join.token': tokens.join }
    await other.configure({ ...pc, ...joining })
    await other.restart()
    await gateway.untilConnected(joinedId)
    expect(await at(state.projects.joined)).toEqual([200, 'at the other'])

    // What is revoked and made now lasts, too.
    const ci = listed.find(({ name }) => name === 'ci')
    await gateway.call('DELETE', `/v2/tokens/${ci?.token_id}`)
    const { token } = await gateway.call<{ token: string }>('POST', '/v2/tokens', { name: 'fresh', role: 'read' })
    await gateway.restart()
    expect(await at(state.projects.near)).toEqual([401, undefined])
    expect(await at(state.projects.near, bearer(token))).toEqual([200, 'at near'])
  })
