import { expect, inject, test, vi } from 'vitest'
import type { Diagnosis } from '../../src/model/host.ts'
import type { LabKind } from '../../src/model/lab/kind.ts'
import { base, body, newPc, newProject, notByWorker, post, put, send } from '../support/api.ts'
import { hangMs } from '../support/limits.ts'

test('answers carry the headers of the service', async () => {
  const answer = await send('/v2/compute/version')
  expect(answer.headers.get('server')).toBe('patchbay/0.0.0-test')
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('x-route')).toBe('/v2/compute/version')
  expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f]{8}-\w+$/)
  expect(answer.headers.get('access-control-allow-origin')).toBe(null)
})

test.for([
  ['GET', '/nowhere', 404],
  ['GET', '/v1', 404],
  ['GET', '//v1/version', 404],
  ['GET', '/v1/projects/%zz', 400],
  ['GET', '/v1/projects/nope', 400],
  ['GET', '/v1/projects/7a2f0000-0000-0000-0000-000000000000', 404],
  ['GET', '/v2/compute/projects/7a2f0000-0000-0000-0000-000000000000/pc/nodes/x', 400],
] as const)('%s %s is %d, as JSON', async ([method, path, status]) => {
  const answer = await send(path, { method })
  expect(answer.status).toBe(status)
  expect(await answer.json()).toEqual({ message: expect.any(String), status })
})

test('a wrong method names the right ones', async () => {
  const answer = await send('/v1/version', { method: 'DELETE' })
  expect(answer.status).toBe(405)
  expect(answer.headers.get('allow')).toBe('GET, HEAD, POST, OPTIONS')
  expect(await answer.json()).toMatchObject({ status: 405 })
})

test('OPTIONS names the methods, HEAD answers without a body', async () => {
  const options = await send('/v1/projects', { method: 'OPTIONS' })
  expect(options.status).toBe(204)
  expect(options.headers.get('allow')).toBe('GET, HEAD, POST, OPTIONS')
  const head = await send('/v1/version', { method: 'HEAD' })
  expect(head.status).toBe(200)
  expect(await head.text()).toBe('')
  const project = await newProject()
  expect((await send(`${project.v2}/notifications`, { method: 'HEAD' })).status).toBe(200)
})

test.for([
  ['{"name": 5}', 'name: expected a string of 1 to 255 characters, in one line, got 5'],
  ['{"name": "x", "project_id": "nope"}', 'project_id: expected a UUID, got "nope"'],
  ['{"nmae": "x"}', 'nmae: unknown field, did you mean name?'],
  ['{"name": "x", "temporary": "yes"}', 'temporary: expected true or false, got "yes"'],
  ['[1]', 'body: expected a JSON object such as {"name": "lab"}, got a list'],
  ['"x"', 'body: expected a JSON object such as {"name": "lab"}, got a string'],
  ['{"name":', /^body: not JSON/],
  ['{"__proto__": {"name": "x"}}', /^__proto__: unknown field/],
] as const)('the body %s is refused', async ([input, message]) => {
  const answer = await post('/v1/projects', input)
  expect(answer.status).toBe(400)
  const fault = await body<{ message: string; status: number }>(answer)
  expect(fault.status).toBe(400)
  expect(fault.message).toMatch(message)
})

test('a missing field is named', async () => {
  const project = await newProject()
  const answer = await post(`${project.v2}/pc/nodes`, {})
  expect(await answer.json()).toEqual({
    message: 'name: missing, expected a string of 1 to 255 characters, in one line',
    status: 400,
  })
})

test('a body that is too large is refused, announced or not', async () => {
  const large = JSON.stringify({ name: 'x'.repeat(inject('isRealWorker') ? 1_100_000 : 70_000) })
  expect((await post('/v1/projects', large)).status).toBe(413)
  const stream = new Blob([large]).stream()
  const chunked = await fetch(`${base}/v1/projects`, { method: 'POST', body: stream, duplex: 'half' } as RequestInit)
  expect(chunked.status).toBe(413)
})

test('text that is not UTF-8 is refused', async () => {
  const answer = await send('/v1/projects', { method: 'POST', body: Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d) })
  expect(answer.status).toBe(400)
})

test('an empty body is an empty object, and actions ignore their body', async () => {
  expect((await send('/v1/projects', { method: 'POST' })).status).toBe(201)
  const project = await newProject()
  const pc = await newPc(project)
  expect((await post(`${pc.path}/stop`, { whatever: 1 })).status).toBe(204)
  expect((await post(`${pc.path}/stop`, '{broken')).status).toBe(400)
})

// Whoever has credentials may send them from any page.
notByWorker('a foreign web page is kept out, an allowed one is let in', async () => {
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
  ]) {
    const answer = await send('/v1/projects', { method: 'POST', headers: headers as Record<string, string> })
    expect(answer.status).toBe(403)
    expect(answer.headers.get('access-control-allow-origin')).toBe(null)
  }
  const allowed = await send('/v2/compute/version', { headers: { origin: 'https://lab.example' } })
  expect(allowed.status).toBe(200)
  expect(allowed.headers.get('access-control-allow-origin')).toBe('https://lab.example')
  const preflight = await send('/v2/compute/projects', {
    method: 'OPTIONS',
    headers: { origin: 'https://lab.example', 'access-control-request-method': 'POST' },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
  const own = await send('/v2/compute/version', { headers: { origin: base } })
  expect(own.status).toBe(200)
})

test('versions are compared', async () => {
  const { version } = await body<{ version: string }>(send('/v1/version'))
  expect((await post('/v1/version', { version })).status).toBe(200)
  const other = await post('/v2/version', { version: '9.9.9' })
  expect(other.status).toBe(409)
  expect((await body<{ message: string }>(other)).message).toContain(version)
})

test('the host is described: interfaces, ports, load', async () => {
  expect(await body(send('/v2/compute/capabilities'))).toMatchObject({ platform: 'linux', packet_path: 'fast' })
  // Other tests make and remove interfaces between two requests.
  await vi.waitFor(
    async () => {
      const interfaces = await body<{ name: string }[]>(send('/v2/compute/network/interfaces'))
      expect(interfaces).toContainEqual(expect.objectContaining({ name: 'lo', ip_address: '127.0.0.1', special: true }))
      expect(await body(send('/v1/interfaces'))).toEqual(interfaces)
    },
    { timeout: hangMs },
  )
  const { ok, checks } = await body<Diagnosis>(send('/v2/compute/doctor'))
  // A gateway has a check of each compute.
  expect([ok, checks.filter(({ status }) => status !== 'ok')]).toEqual([true, []])
})

test('a reload of the configuration has the status of each API version', async () => {
  const v1 = await post('/v1/config/reload')
  // A gateway is never in local mode.
  if (inject('isWorker')) {
    expect([v1.status, (await post('/v2/compute/config/reload')).status]).toEqual([403, 403])
    return
  }
  expect(v1.status).toBe(201)
  expect(await v1.text()).toBe('')
  expect(await body(post('/v2/compute/config/reload'))).toEqual({ changed: [], needs_restart: [] })
})

test('browsers revalidate the page each time, and cache its files for ever', async () => {
  const page = await send('/')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self';")
  expect(page.headers.get('cache-control')).toBe('no-cache')
  const html = await page.text()
  const [path = ''] = /\/app\/app-[A-Z0-9]{8}\.js/.exec(html) ?? []
  const script = await send(path)
  expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  expect(script.headers.get('cache-control')).toContain('immutable')
  expect(await script.text()).not.toBe('')
  expect((await send('/app/app-00000000.js')).status).toBe(404)
  expect((await send('/app/index.html')).status).toBe(400)
  // The licences of what is in the scripts go along with them.
  const [licences = ''] = /\/app\/licences-[A-F0-9]{8}\.txt/.exec(html) ?? []
  const text = await (await send(licences)).text()
  for (const name of ['preact', '@preact/signals', '@xterm/xterm', '@novnc/novnc'])
    expect(text).toMatch(new RegExp(`^${name} \\d`, 'm'))
  expect(text).toContain('Permission is hereby granted')
  // MPL 2.0, 3.2: where its sources are.
  expect(text).toContain('https://github.com/novnc/noVNC')
  expect(text).toContain('Vitaly Puzrin')
})

test('each kind has a form of its settings, and its configurations apart from them', async () => {
  const kinds = await body<LabKind[]>(send('/v2/kinds'))
  expect(kinds.map(({ name }) => name)).toContain('machine-emulator')
  expect(kinds.find(({ name }) => name === 'pc')).toMatchObject({
    can_be_suspended: true,
    has_images: false,
    consoles: ['text'],
    console_types: ['telnet', 'none'],
    configs: ['startup'],
  })
  expect(kinds.find(({ name }) => name === 'machine-emulator')?.live_settings).toContain('cdrom_image')
  expect(kinds.find(({ name }) => name === 'machine-emulator')?.live_settings).not.toContain('ram')
  expect(kinds.find(({ name }) => name === 'iou')).toMatchObject({
    configs: ['startup', 'private'],
    settings: { type: 'object', properties: { ram: { anyOf: [{ type: 'integer' }, { type: 'null' }] } } },
  })
  for (const { settings } of kinds)
    for (const member of ['name', 'startup_script', 'startup_config_content', 'private_config_content'])
      expect(settings.properties).not.toHaveProperty(member)
})

test('the reference page and its document are served', async () => {
  const page = await send('/docs')
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await page.text()).toContain('<script src="/docs/page.js" defer>')
  const script = await send('/docs/rapidoc.js')
  expect(script.status).toBe(200)
  expect(await script.text()).not.toBe('')
  const known = await send('/docs/rapidoc.js', { headers: { 'If-None-Match': script.headers.get('etag') ?? '' } })
  expect([known.status, await known.text()]).toEqual([304, ''])
  const own = await send('/docs/page.js')
  expect(own.headers.get('content-type')).toContain('text/javascript')
  expect(await own.text()).toContain("fetch('/openapi.json')")
  expect(await body(send('/openapi.json'))).toMatchObject({ openapi: '3.1.1' })
})

test('null leaves a nullable field of an update unchanged', async () => {
  const project = await newProject({ name: 'kept' })
  expect(await body(put(project.v2, { name: null, variables: null }))).toMatchObject({ name: 'kept' })
})

test('an answer has the request id of the client, and at a gateway the name of the compute', async () => {
  const { v1, v2 } = await newProject()
  for (const path of [v1, v2, `${v2}/pc/nodes/${crypto.randomUUID()}`, '/v2/compute/projects', '/nowhere']) {
    const kept = await send(path, { headers: { 'X-Request-Id': 'Order-66' } })
    expect([path, kept.headers.get('x-request-id')]).toEqual([path, 'Order-66'])
    const made = await send(path, { headers: { 'X-Request-Id': 'no id' } })
    expect(made.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9-]{5,64}$/)
    const isOfProject = path.startsWith(v1) || path.startsWith(v2)
    const named = isOfProject && inject('isWorker') ? expect.stringMatching(/^c\d+$/) : null
    expect([path, kept.headers.get('x-patchbay-compute')]).toEqual([path, named])
  }
})
