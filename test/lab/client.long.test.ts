import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Miniflare } from 'miniflare'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { bundleClient } from '../../scripts/packages/client.ts'
import { workerRules } from '../../scripts/run-worker.ts'
import { type FeedLine, Patchbay } from '../../src/client/patchbay.ts'
import { requireChromium, startChromium } from '../support/chromium.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

// `patchbay/client` as a package has it, in each runtime: a typed call, an event of a feed, a console as streams, and a refusal.

const token = 'a-token-of-a-test'

/** What a program does; the same text in each runtime. */
const program = `
import { Patchbay } from './client.js'

export async function run(server) {
  const client = new Patchbay({ server, token: '${token}' })
  const params = { project_id: 'two', node_id: 'PC2' }
  const over = new AbortController()
  const feed = client.feed({ project: 'two', signal: over.signal })
  const first = (await feed.next()).value.action
  await client.call('POST /v2/projects/{project_id}/nodes/{node_id}/stop', { params })
  let line
  do line = (await feed.next()).value
  while (line.action !== 'node.updated' || line.event.status !== 'stopped')
  over.abort()
  const { done } = await feed.next()

  const console = await client.console({ project: 'two', node: 'PC1' }, { replay: false })
  const writer = console.writable.getWriter()
  await writer.write('echo said by a program\\r')
  let text = ''
  for await (const piece of pieces(console.readable.pipeThrough(new TextDecoderStream()))) {
    text += piece
    if (/^said by a program/m.test(text)) break
  }
  console.close()
  await console.closed

  await client.call('POST /v2/projects/{project_id}/nodes/{node_id}/start', { params })
  const refused = await client
    .call('GET /v2/projects/{project_id}', { params: { project_id: 'none' } })
    .catch(({ name, status, code }) => ({ name, status, code }))
  return { first, node: line.event.name, done, text: text.includes('said by a program'), refused }
}

/** Browsers cannot iterate streams yet. */
async function* pieces(stream) {
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}
`
const expected = {
  ...{ first: 'ping', node: 'PC2', done: true, text: true },
  refused: { name: 'PatchbayError', status: 404, code: 'no-such-project' },
}

let directory: string
/** With a token, and a lab of two pcs that run. */
let service: TestService
/** Of a site that may ask the service. */
let origin: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'patchbay-client-'))
  await bundleClient(join(directory, 'client.js'))
  await writeFile(join(directory, 'program.js'), program)
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }\n')
  const files = new Map<string, string>()
  for (const name of ['client.js', 'program.js']) files.set(`/${name}`, await readFile(join(directory, name), 'utf8'))
  const site = createServer(({ url = '' }, response) => {
    const isPage = url === '/'
    const text = isPage ? '<!doctype html>' : (files.get(url) ?? '')
    response.writeHead(200, { 'content-type': isPage ? 'text/html' : 'text/javascript' }).end(text)
  })
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  origin = `http://localhost:${(site.address() as AddressInfo).port}`
  service = await TestService.startForAll({ 'pc.engine': 'embedded', token, allowed_origins: [origin] })
  await makeLab()
  return async () => {
    site.close()
    await service.close()
    await rm(directory, { recursive: true, force: true })
  }
})

async function makeLab(): Promise<void> {
  const client = new Patchbay({ server: service.url, token })
  const { job_id = '' } = await client.call('PUT /v2/projects/{project_id}/topology', {
    params: { project_id: 'two' },
    query: { start: 'true' },
    body: { document: 'lab: two\nnodes: { PC1: { kind: pc }, PC2: { kind: pc } }\n' },
  })
  const job = () => client.call('GET /v2/jobs/{job_id}', { params: { job_id } })
  await vi.waitUntil(async () => (await job()).status === 'done', { timeout: hangMs })
}

test('programs on Node call endpoints, read events and type on consoles', async () => {
  const { run } = (await import(pathToFileURL(join(directory, 'program.js')).href)) as {
    run(server: string): Promise<unknown>
  }
  expect(await run(service.url)).toEqual(expected)
})

test('so do Workers', async () => {
  const main = `import { run } from './program.js'
    export default {
      async fetch(request) {
        return run(await request.text()).then(Response.json, (error) => new Response(error.stack, { status: 500 }))
      },
    }`
  const read = async (path: string) => ({
    ...{ type: 'ESModule' as const, path, contents: await readFile(join(directory, path), 'utf8') },
  })
  const modules = [
    { type: 'ESModule' as const, path: 'main.js', contents: main },
    await read('program.js'),
    await read('client.js'),
  ]
  const worker = new Miniflare({ ...(await workerRules()), modules })
  onTestFinished(() => worker.dispose())
  const answer = await worker.dispatchFetch('http://worker/', { method: 'POST', body: service.url })
  expect(JSON.parse(await answer.text())).toEqual(expected)
})

testWith(requireChromium())('so do pages of other sites that may', async () => {
  const page = await (await startChromium()).newPage()
  await page.goto(origin)
  expect(await page.evaluate(`import('/program.js').then(({ run }) => run('${service.url}'))`)).toEqual(expected)
})

test('a feed continues when its service was killed and has started again', async () => {
  const { port } = new URL(service.url)
  const client = new Patchbay({ server: service.url, token })
  const over = new AbortController()
  const lines: FeedLine[] = []
  const told: (string | undefined)[] = []
  const ended = (async () => {
    const options = { project: 'two', signal: over.signal, onLost: (error?: Error) => void told.push(error?.name) }
    for await (const line of client.feed(options)) lines.push(line)
  })()
  const has = (action: string) => expect.poll(() => lines.map((it) => it.action), { timeout: hangMs }).toContain(action)
  await has('ping')
  await service.kill('SIGKILL')
  await expect.poll(() => told[0], { timeout: hangMs }).toBe('PatchbayError')
  await service.restart(Number(port))
  await expect.poll(() => told.at(-1), { timeout: hangMs }).toBeUndefined()
  const params = { project_id: 'two', node_id: 'PC2' }
  await client.call('POST /v2/projects/{project_id}/nodes/{node_id}/stop', { params })
  await has('node.updated')
  // What was there before the kill is to be read again.
  await has('resync')
  over.abort()
  await ended
})
