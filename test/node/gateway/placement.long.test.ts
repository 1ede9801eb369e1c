import { expect, onTestFinished, test, vi } from 'vitest'
import { Unreachable } from '../../../src/compute/remote/unreachable.ts'
import { withComputeContext } from '../../../src/fleet/members/member-errors.ts'
import { Scheduler } from '../../../src/fleet/placement/scheduler.ts'
import type { LocalHostAgent } from '../../../src/host-agent.ts'
import { ApiError, conflict, missingImage, notFound } from '../../../src/lib/errors/api-error.ts'
import type { Project, ProjectCreate } from '../../../src/model/project.ts'
import { startGateway } from '../../support/gateway.ts'

const projects = '/v2/compute/projects'

/** A compute that has projects, and nothing else. */
function compute(more: Partial<LocalHostAgent['projects']> = {}): { agent: LocalHostAgent; has: Map<string, Project> } {
  const has = new Map<string, Project>()
  const get = async (id: string): Promise<Project> => {
    const found = has.get(id)
    if (found === undefined) throw notFound('none', { code: 'no-such-project' })
    return found
  }
  const own = {
    list: async () => [...has.values()],
    get,
    async create({ project_id, name, temporary }: ProjectCreate) {
      const id = String(project_id)
      const before = has.get(id)
      const project = before ?? {
        ...{ project_id: id, name: name ?? null, path: `/${id}`, location: '/', variables: null },
        temporary: temporary ?? false,
      }
      has.set(id, project)
      return { project, created: before === undefined }
    },
    async close(id: string) {
      await get(id)
      has.delete(id)
    },
    async remove(id: string) {
      await get(id)
      has.delete(id)
    },
    ...more,
  }
  return { agent: { projects: own } as unknown as LocalHostAgent, has }
}

const gone = () => new Unreachable(409, 'cannot be reached: ECONNREFUSED')
/** As the agent of a compute says it. */
const unreached = () => withComputeContext(gone(), { name: 'one' }) as ApiError

test('a project that is created while it is closed is on the compute of its placement', async () => {
  let arrived = () => {}
  let go = () => {}
  const closing = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const mayClose = new Promise<void>((resolve) => {
    go = resolve
  })
  const one = compute({
    async close(id) {
      one.has.delete(id)
      arrived()
      await mayClose
    },
  })
  const gateway = startGateway([one.agent])
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', temporary: true })
  const closed = gateway.fetch('POST', `${projects}/${project_id}/close`)
  await closing
  const again = gateway.fetch('POST', projects, { name: 'lab', project_id: String(project_id).toUpperCase() })
  go()
  expect((await closed).status).toBe(204)
  expect((await again).status).toBe(201)
  expect([...one.has.keys()]).toEqual([project_id])
  expect([...gateway.placements.keys()]).toEqual([project_id])
})

test('computes are asked whether they have a project only when the client gives its id', async () => {
  const asked: string[] = []
  const get = async (id: string): Promise<Project> => {
    asked.push(id)
    throw notFound('none', { code: 'no-such-project' })
  }
  const gateway = startGateway([compute({ get }).agent, compute({ get }).agent])
  await gateway.call('POST', projects, { name: 'lab' })
  expect(asked).toEqual([])
  const project_id = crypto.randomUUID()
  await gateway.call('POST', projects, { name: 'lab', project_id })
  expect(asked).toEqual([project_id, project_id])
})

test('a project that is placed during a search for it stays there', async () => {
  const one = compute()
  let found = () => {}
  let go = () => {}
  const asked = new Promise<void>((resolve) => {
    found = resolve
  })
  const maySay = new Promise<void>((resolve) => {
    go = resolve
  })
  const two = compute({
    async get(id) {
      found()
      await maySay
      return { project_id: id } as Project
    },
  })
  const gateway = startGateway([one.agent, two.agent])
  const id = crypto.randomUUID()
  const read = gateway.fetch('GET', `${projects}/${id}`)
  await asked
  await one.agent.projects.create({ project_id: id, name: 'lab' })
  gateway.placements.set(id, 'c0')
  go()
  expect(await (await read).json()).toMatchObject({ name: 'lab' })
  expect(gateway.placements.get(id)).toBe('c0')
})

test('a compute that cannot be reached is 503 with Retry-After, and not the 409 that a request could mend', async () => {
  const fail = () => Promise.reject(unreached())
  const one = compute({ create: fail, get: fail, list: fail })
  const gateway = startGateway([one.agent])
  for (const member of gateway.members) member.forward = () => Promise.reject(gone())
  const id = crypto.randomUUID()
  gateway.placements.set(id, 'c0')
  const answers = [
    await gateway.fetch('GET', `${projects}/${id}`),
    await gateway.fetch('POST', projects, { name: 'lab', project_id: id }),
    await gateway.fetch('POST', projects, { name: 'lab' }),
    await gateway.fetch('POST', projects, { name: 'lab', compute_id: 'c0' }),
    await gateway.fetch('GET', projects),
  ]
  expect(answers.map(({ status, headers }) => [status, headers.get('Retry-After')])).toEqual(
    answers.map(() => [503, '5']),
  )
  // Also with an error it is said who did not answer.
  expect(answers.at(-1)?.headers.get('X-Patchbay-Unreachable')).toBe('Compute%200')
})

test('silent computes delay a list for a limited time, and the list has the projects of others', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const silent = () => compute({ list: () => new Promise(() => {}) }).agent
  const one = compute()
  await one.agent.projects.create({ name: 'lab' })
  const gateway = startGateway([...Array.from({ length: 30 }, silent), one.agent])
  const listed = gateway.fetch('GET', projects)
  await vi.advanceTimersByTimeAsync(20_000)
  const answer = await listed
  expect(answer.headers.get('X-Patchbay-Unreachable')?.split(', ')).toHaveLength(30)
  expect(await answer.json()).toMatchObject([{ name: 'lab' }])
})

test('a list names only as many silent computes as fit in a header, and counts the others', async () => {
  const gateway = startGateway(Array.from({ length: 20 }, () => compute().agent))
  for (const member of gateway.members.slice(0, -1)) {
    member.name = 'ü'.repeat(255)
    member.isConnected = false
  }
  for (const [index, member] of gateway.members.entries()) member.name += index
  const answer = await gateway.fetch('GET', projects)
  const names = answer.headers.get('X-Patchbay-Unreachable') ?? ''
  expect([answer.status, names.length < 4200, names.split(', ').length, names.split(', ').at(-1)]).toEqual([
    ...[200, true, 3, '+17'],
  ])
})

test('a silent compute does not delay the download of an image, and its late answer is not read', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let cancelled = () => {}
  const isCancelled = new Promise<void>((resolve) => {
    cancelled = resolve
  })
  let say: (image: unknown) => void = () => {}
  const late = new Promise<unknown>((resolve) => {
    say = resolve
  })
  const withImages = (read: () => Promise<unknown>) => ({ images: { read } }) as unknown as LocalHostAgent
  const gateway = startGateway([
    withImages(() => late),
    withImages(() => new Promise(() => {})),
    withImages(async () => ({ content: new Blob(['disk']).stream(), size: 4 })),
  ])
  const read = gateway.fetch('GET', '/v2/compute/machine-emulator/images/x')
  await vi.advanceTimersByTimeAsync(2000)
  const answer = await read
  expect([await answer.text(), answer.headers.get('X-Patchbay-Compute')]).toEqual(['disk', 'c2'])
  say({ content: new ReadableStream({ cancel: cancelled }), size: 4 })
  await isCancelled
})

test('the error of an image is that of the compute that has it, in any order of answers', async () => {
  const images = (error: ApiError) => ({ images: { read: () => Promise.reject(error) } }) as unknown as LocalHostAgent
  const none = missingImage('There is no image x', 'x')
  const read = async (...errors: ApiError[]) =>
    (await startGateway(errors.map(images)).fetch('GET', '/v2/compute/machine-emulator/images/x')).status
  expect(await read(new ApiError(416, 'no such bytes'), none)).toBe(416)
  expect(await read(none, unreached())).toBe(503)
  expect(await read(none, none)).toBe(409)
  expect(await read(unreached(), conflict('a directory is there'))).toBe(409)
})

test('a failed creation of a project takes no room, also with other placements meanwhile', () => {
  const room = new Scheduler()
  const member = (id: string) => ({
    ...{ id, name: id, isConnected: true, acceptsProjects: true, weight: 1 },
    agentFor: () => ({}) as LocalHostAgent,
    forward: () => Promise.reject(new Error('nothing is handed on')),
    load: { cpu_usage_percent: 0, memory_usage_percent: 0 },
  })
  const [a, b] = [member('a'), member('b')]
  const undo = [room.place(a), room.place(a)]
  for (const it of undo) it()
  room.place(b)
  expect(room.order([b, a]).map(({ id }) => id)).toEqual(['a', 'b'])
})

test('a compute that leaves while its feed is opened, and unreadable loads, have no other effects', async () => {
  const gateway = startGateway([compute().agent])
  const [member] = gateway.members
  Object.defineProperty(member, 'agent', {
    get() {
      throw notFound('compute_id: there is no compute c0')
    },
  })
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const feed = gateway.fetch('GET', '/v2/compute/notifications', undefined, { signal: over.signal })
  const reader = (await feed).body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('"ping"')
  await reader?.cancel()
})

test('a compute with a short peak of load gets its share of many projects, one with full memory gets none', () => {
  const room = new Scheduler()
  const loads = { idle: [0, 0], busy: [100, 0], full: [0, 100] }
  const members = Object.entries(loads).map(([id, [cpu = 0, memory = 0]]) => ({
    ...{ id, name: id, isConnected: true, acceptsProjects: true, weight: 1, agent: undefined as never },
    agentFor: () => undefined as never,
    forward: () => undefined as never,
    load: { cpu_usage_percent: cpu, memory_usage_percent: memory },
  }))
  const chosen = Array.from({ length: 160 }, () => {
    const [best] = room.order(members)
    if (best !== undefined) room.place(best)
    return best?.id
  })
  expect(new Set(chosen)).toEqual(new Set(['idle', 'busy']))
})

test('a project that is open on two computes and was not placed is 409 that names both, and a list has both', async () => {
  const [one, two, three] = [compute(), compute(), compute()]
  const gateway = startGateway([one.agent, two.agent, three.agent])
  const id = crypto.randomUUID()
  for (const { agent } of [one, two]) await agent.projects.create({ project_id: id, name: 'lab', temporary: false })
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const feed = gateway.fetch('GET', '/v2/compute/notifications', undefined, { signal: over.signal })
  const lines = (await feed).body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await lines?.read())?.value).toContain('"ping"')

  const both = { message: expect.stringMatching(/open on the computes Compute 0 \(c0\) and Compute 1 \(c1\)/) }
  for (const [method, path] of [
    ['GET', ''],
    ['PUT', ''],
    ['POST', '/close'],
    ['GET', '/pc/nodes'],
  ] as const) {
    const body = method === 'PUT' ? { name: 'x' } : undefined
    const answer = await gateway.fetch(method, `${projects}/${id}${path}`, body)
    expect([answer.status, await answer.json()]).toMatchObject([409, both])
  }
  const again = await gateway.fetch('POST', projects, { name: 'lab', project_id: id })
  expect([again.status, await again.json()]).toMatchObject([409, both])
  const listed = await gateway.call<Project[]>('GET', projects)
  expect(listed.map(({ project_id, compute_id }) => [project_id, compute_id])).toEqual([
    [id, 'c0'],
    [id, 'c1'],
  ])
  // It is told once.
  let line = ''
  while (!line.includes('log.warning')) line = (await lines?.read())?.value ?? 'log.warning: the end'
  expect(line).toContain(`The project ${id} is open on the computes`)

  // A person decides.
  await two.agent.projects.close(id)
  const answer = await gateway.fetch('GET', `${projects}/${id}`)
  expect([answer.status, answer.headers.get('x-patchbay-compute')]).toEqual([200, 'c0'])
})

test('a compute that claims a project of another placement does not get its requests', async () => {
  const [one, thief] = [compute(), compute()]
  const gateway = startGateway([thief.agent, one.agent])
  const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: 'c1' })
  const id = String(project_id)
  await thief.agent.projects.create({ project_id: id, name: 'stolen', temporary: false })
  const shown = await gateway.call<Project[]>('GET', projects)
  expect(shown.map(({ name, compute_id }) => [name, compute_id])).toEqual([
    ['stolen', 'c0'],
    ['lab', 'c1'],
  ])
  const answer = await gateway.fetch('GET', `${projects}/${id}`)
  expect([await answer.json(), answer.headers.get('x-patchbay-compute')]).toMatchObject([{ name: 'lab' }, 'c1'])
})

test('every answer of a single compute names it, also an error', async () => {
  const [one, two] = [compute(), compute({ update: () => Promise.reject(conflict('it is busy')) })]
  const gateway = startGateway([one.agent, two.agent])
  const created = await gateway.fetch('POST', projects, { name: 'lab', compute_id: 'c1' })
  expect(created.headers.get('x-patchbay-compute')).toBe('c1')
  const { project_id } = (await created.json()) as Project
  const refused = await gateway.fetch('PUT', `${projects}/${project_id}`, { name: 'x' })
  expect([refused.status, refused.headers.get('x-patchbay-compute')]).toEqual([409, 'c1'])
})

test('when placements cannot be saved, reads and completed deletions are still answered', async () => {
  const [one, two] = [compute(), compute()]
  const gateway = startGateway([one.agent, two.agent])
  const { project_id } = await gateway.call<Project>('POST', projects, { name: 'placed' })
  const full = () => {
    throw new ApiError(507, 'the disk is full')
  }
  gateway.placements.set = full
  gateway.placements.delete = full
  expect((await gateway.fetch('POST', projects, { name: 'new' })).status).toBe(507)
  expect(one.has.size + two.has.size).toBe(1)
  const found = crypto.randomUUID()
  await two.agent.projects.create({ project_id: found, name: 'elsewhere' })
  for (let round = 0; round < 2; round++)
    expect(await gateway.call('GET', `${projects}/${found}`)).toMatchObject({ name: 'elsewhere' })
  expect((await gateway.fetch('DELETE', `${projects}/${found}`)).status).toBe(204)
  expect((await gateway.fetch('DELETE', `${projects}/${project_id}`)).status).toBe(204)
  expect(one.has.size + two.has.size).toBe(0)
  expect((await gateway.fetch('GET', `${projects}/${project_id}`)).status).toBe(404)
})
