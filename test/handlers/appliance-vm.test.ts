import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, expect, onTestFinished } from 'vitest'
import { body, del, post, put, send, notByWorker as test } from '../support/api.ts'

const appliance = '/v2/appliancevm'
const usual = {
  enable: false,
  engine: 'libvirt',
  vmname: null,
  when_exit: 'stop',
  headless: false,
  allocate_vcpus_ram: true,
  ram: 2048,
  vcpus: 1,
  address: null,
  port: 3080,
  user: null,
}

afterEach(async () => {
  expect((await put(appliance, { ...usual })).status).toBe(201)
})

/** A compute that is registered by that name, and says who asked. */
async function newCompute(name: string, version = '0.0.0-test') {
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    const event = { cpu_usage_percent: 1, memory_usage_percent: 2 }
    res.setHeader('Content-Type', 'application/json')
    if (req.url === '/v2/compute/capabilities') res.end(JSON.stringify({ version, platform: 'linux', node_types: [] }))
    else if (req.url === '/v2/compute/notifications') res.write(`${JSON.stringify({ action: 'ping', event })}\n`)
    else res.end(JSON.stringify({ asked: `${req.method} ${req.url}`, by: req.headers.authorization }))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const compute_id = crypto.randomUUID()
  const access = { user: 'anna', password: 'geheim' }
  await post('/v2/computes', { compute_id, name, protocol: 'http', host: '127.0.0.1', port, ...access })
  onTestFinished(async () => {
    await del(`/v2/computes/${compute_id}`)
    server.close()
    server.closeAllConnections()
  })
  return { port, compute_id }
}

test('the settings are merged, bounded, and shown without the password', async () => {
  expect(await body(send(appliance))).toEqual(usual)
  const answer = await put(appliance, { vmname: 'Lab VM', ram: 4096, user: 'anna', password: 'geheim', headless: null })
  const changed = { ...usual, vmname: 'Lab VM', ram: 4096, user: 'anna' }
  expect([answer.status, await body(answer)]).toEqual([201, changed])
  expect(await body(put(appliance, { port: 80, address: '[fd00::1]' }))).toEqual({
    ...{ ...changed, port: 80, address: 'fd00::1' },
  })
  expect(await body(put(appliance, { address: null, user: null }))).toEqual({ ...changed, port: 80, user: null })
  expect((await put(appliance, await body(send(appliance)))).status).toBe(201)
})

test('read-only members may be sent back, and the password, which is not shown, stays', async () => {
  const given = { vmname: 'Lab VM', user: 'anna', password: 'geheim', port: 80 }
  const shown = await body<Record<string, unknown>>(put(appliance, given))
  await fc.assert(
    fc.asyncProperty(fc.subarray(Object.keys(shown)), async (names) => {
      const answer = await put(appliance, Object.fromEntries(names.map((name) => [name, shown[name]])))
      expect([answer.status, await body(answer)]).toEqual([201, shown])
    }),
    { numRuns: 15 },
  )
  expect((await put(appliance, { ...shown, nonsense: 1 })).status).toBe(400)
})

test.for([
  [{ engine: 'vmware' }, /engine: expected "libvirt", "virtualbox" or "remote", got "vmware"/],
  [{ engine: 'hyper-v' }, /engine: expected "libvirt", "virtualbox" or "remote"/],
  [{ when_exit: 'die' }, /when_exit: expected/],
  [{ ram: 0 }, /ram: expected/],
  [{ vcpus: '2' }, /vcpus: expected/],
  [{ port: 65_536 }, /port: expected/],
  [{ vmname: 'two\nlines' }, /vmname: expected the name of a VM/],
  [{ vmname: '' }, /vmname: expected/],
  [{ address: '169.254.1.1' }, /host: 169\.254\.1\.1 is a link-local/],
  [{ memory: 1 }, /memory: unknown field/],
] as const)('%j is refused, and nothing is changed', async ([input, message]) => {
  const answer = await put(appliance, { enable: true, ...input })
  expect([answer.status, await body(answer)]).toEqual([400, { status: 400, message: expect.stringMatching(message) }])
  expect(await body(send(appliance))).toEqual(usual)
})

test('engines are listed with their capabilities, and with their VMs', async () => {
  const engines = await body<{ engine_id: string }[]>(send(`${appliance}/engines`))
  expect(engines.find(({ engine_id }) => engine_id === 'remote')).toEqual({
    ...{ engine_id: 'remote', name: 'Remote', description: expect.any(String) },
    ...{ support_when_exit: false, support_headless: false, support_ram: false },
  })
  const name = `lab ${crypto.randomUUID()}`
  await newCompute(name)
  const vms = await body<{ vmname: string }[]>(send(`${appliance}/engines/remote/vms`))
  expect(vms).toContainEqual({ vmname: name })
  expect(vms.map(({ vmname }) => vmname)).not.toContain('this')
  for (const engine of ['vmware', 'toString', 'x'.repeat(90)]) {
    expect((await send(`${appliance}/engines/${engine}/vms`)).status).toBe(404)
  }
})

test('without the name of a VM nothing is started', async () => {
  expect((await put(appliance, { engine: 'remote', enable: true })).status).toBe(201)
  expect((await send('/v2/computes/vm')).status).toBe(404)
})

test('the VM becomes the compute vm, answers requests, and stops being that compute', async () => {
  const name = `lab ${crypto.randomUUID()}`
  const { port } = await newCompute(name)
  const answer = await put(appliance, { enable: true, engine: 'remote', vmname: name })
  expect([answer.status, await body(answer)]).toEqual([201, { ...usual, enable: true, engine: 'remote', vmname: name }])
  const shown = { compute_id: 'vm', name: `Appliance VM (${name})`, host: '127.0.0.1', port, user: 'anna' }
  expect(await body(send('/v2/computes/vm'))).toMatchObject({ ...shown, connected: true, last_error: null })
  expect(await body(send('/v2/computes/vm/pc/things?a=1'))).toEqual({
    asked: 'GET /v2/compute/pc/things?a=1',
    by: `Basic ${btoa('anna:geheim')}`,
  })
  expect(await body(send('/v2/computes/endpoint/vm/pc/images'))).toEqual({
    endpoint: `http://127.0.0.1:${port}/v2/compute/pc/images`,
  })
  expect((await put('/v2/computes/vm', { name: 'mine' })).status).toBe(409)
  expect((await del('/v2/computes/vm')).status).toBe(409)
  expect((await put(appliance, { enable: false })).status).toBe(201)
  expect((await send('/v2/computes/vm')).status).toBe(404)
  expect((await send('/v2/computes/vm/pc/things')).status).toBe(404)
})

test('a failed start is reported by the answer and by the compute, and the settings are saved', async () => {
  const answer = await put(appliance, { enable: true, engine: 'remote', vmname: 'nobody' })
  const message = 'The appliance VM "nobody" was not started: There is no compute "nobody"'
  expect([answer.status, await body(answer)]).toEqual([409, { status: 409, message }])
  expect(await body(send(appliance))).toMatchObject({ enable: true, vmname: 'nobody' })
  expect(await body(send('/v2/computes/vm'))).toMatchObject({ connected: false, last_error: message })
  expect((await send('/v2/computes/vm/pc/things')).status).toBe(409)

  const old = `lab ${crypto.randomUUID()}`
  await newCompute(old, '9.1.2')
  const refused = await put(appliance, { vmname: old })
  expect([refused.status, await body(refused)]).toMatchObject([409, { message: /runs 9\.1\.2/ }])
  const good = `lab ${crypto.randomUUID()}`
  await newCompute(good)
  expect((await put(appliance, { vmname: good })).status).toBe(201)
  expect(await body(send('/v2/computes/vm'))).toMatchObject({ connected: true })
})
