import { expect, test } from 'vitest'
import { json, openFleet, StandIn } from '../../../support/fleet.ts'
import { startFleetGateway } from '../../../support/gateway.ts'

const project = {
  project_id: crypto.randomUUID(),
  name: 'lab',
  path: '/x',
  location: '/',
  temporary: false,
  variables: null,
}

/** A gateway in front of a compute that has a project. */
async function bed() {
  const compute = await StandIn.start()
  compute.answer = (req, res) =>
    req.url?.startsWith(`/v2/compute/projects/${project.project_id}`)
      ? json(res, 200, project)
      : json(res, 404, { message: 'There is nothing', status: 404 })
  const { fleet } = await openFleet()
  await fleet.create(compute.input())
  const { app } = startFleetGateway(fleet, { token: 'geheim' })
  return {
    compute,
    async ask(path: string, headers: Record<string, string> = {}) {
      const before = compute.asked.length
      const answer = await app.fetch(
        new Request(`http://localhost${path}`, { headers: { authorization: 'Bearer geheim', ...headers } }),
      )
      await answer.body?.cancel()
      return { answer, told: compute.headers.slice(before) }
    },
  }
}

test.for([`/v2/compute/projects/${project.project_id}`, `/v2/computes/one/projects/${project.project_id}`])(
  'the request id of a client is sent to the compute and returned: %s',
  async (path) => {
    const { ask } = await bed()
    // Where the project is was asked by the service itself.
    await ask(path)
    const given = await ask(path, { 'x-request-id': 'Order/66=a_b:~' })
    expect(given.answer.headers.get('x-request-id')).toBe('Order/66=a_b:~')
    expect(given.answer.headers.get('x-patchbay-compute')).toBe('one')
    expect(given.told.map((headers) => headers['x-request-id'])).toEqual(given.told.map(() => 'Order/66=a_b:~'))
    expect(given.told.length).toBeGreaterThan(0)
    // What is no id is replaced by one that the service makes.
    for (const wrong of ['', 'a b', '\u00fc', 'x'.repeat(129)]) {
      const { answer, told } = await ask(path, { 'x-request-id': wrong })
      const made = answer.headers.get('x-request-id') ?? ''
      expect(made).toMatch(/^[0-9a-f]{8}-[0-9a-z]+$/)
      expect(told.map((headers) => headers['x-request-id'])).toEqual(told.map(() => made))
    }
  },
)

test('a compute gets from the gateway whether the client is an administrator, and not from the client', async () => {
  const { ask } = await bed()
  const path = `/v2/compute/projects/${project.project_id}`
  await ask(path)
  const admin = await ask(path)
  expect(admin.told.map((headers) => headers['x-patchbay-via'])).toEqual(admin.told.map(() => 'admin'))
  const less = await ask(path, { 'x-patchbay-via': 'user' })
  expect(less.told.map((headers) => headers['x-patchbay-via'])).toEqual(less.told.map(() => 'user'))
  expect(less.told[0]?.authorization).toBeUndefined()
})
