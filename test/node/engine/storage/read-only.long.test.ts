import { execFileSync } from 'node:child_process'
import { expect, onTestFinished } from 'vitest'
import { requireRoot } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const token = 'the-token-of-the-administrator'
const projects = '/v2/compute/projects'

/** A gateway with credentials and its compute, which has none. */
async function labOf() {
  const compute = await TestService.start({ 'pc.engine': 'embedded' })
  const gateway = await TestService.start({ gateway: true, token })
  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    gateway.fetch(path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  const call = async <T>(...request: Parameters<typeof ask>): Promise<T> => {
    const answer = await ask(...request)
    if (!answer.ok) throw new Error(`${request}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  const { port, hostname: host } = new URL(compute.url)
  await call('POST', '/v2/computes', { compute_id: 'a', protocol: 'http', host, port: Number(port) })
  const isConnected = async () => (await call<{ connected: boolean }>('GET', '/v2/computes/a')).connected
  return { compute, gateway, ask, call, isConnected }
}

/** The messages of the failures that a feed tells of, as they come. */
function failuresIn(feed: Response): readonly string[] {
  const told: string[] = []
  const read = async () => {
    let rest = ''
    for await (const text of feed.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { action, event } = JSON.parse(line) as { action: string; event: { message: string } }
        if (action === 'log.error') told.push(event.message)
      }
    }
  }
  // It ends with the service.
  read().catch(() => {})
  return told
}

testWith(requireRoot())(
  'on a disk that is read-only a gateway refuses what it cannot save, does the rest, and tells of each record once',
  async () => {
    const { compute, gateway, ask, call, isConnected } = await labOf()
    const made = await call<{ token_id: string; token: string }>('POST', '/v2/tokens', { name: 'ci', role: 'read' })
    const placed = await call<{ project_id: string }>('POST', projects, { name: 'placed' })
    const found = await compute.call<{ project_id: string }>('POST', projects, { name: 'found' })
    // Nothing is open that could still be written to.
    await gateway.end()
    await gateway.restart()
    await expect.poll(isConnected).toBe(true)
    const told = failuresIn(await ask('GET', '/v2/notifications'))
    const session = await ask('POST', '/v2/session', { token })
    const cookie = session.headers.get('set-cookie')?.split(';')[0] ?? ''
    execFileSync('mount', ['--bind', gateway.data, gateway.data])
    onTestFinished(() => void execFileSync('umount', [gateway.data]))
    execFileSync('mount', ['-o', 'remount,ro,bind', gateway.data])

    const refused = async (...request: Parameters<typeof ask>) => {
      const answer = await ask(...request)
      const { message } = (await answer.json()) as { message: string }
      expect([answer.status, message]).toEqual([507, expect.stringContaining(gateway.data)])
      expect(message).toContain('read-only')
    }
    const image = '/v2/compute/machine-emulator/images/a.img'
    for (let round = 0; round < 2; round++) {
      await refused('POST', '/v2/tokens', { name: 'other', role: 'read' })
      await refused('DELETE', `/v2/tokens/${made.token_id}`)
      await refused('POST', '/v2/computes', { compute_id: 'b', protocol: 'http', host: '127.0.0.1', port: 9 })
      await refused('DELETE', '/v2/computes/a')
      await refused('POST', projects, { name: 'new' })
      await refused('POST', image, 'content')
    }
    expect(await call('GET', '/v2/tokens')).toHaveLength(1)
    expect((await call<unknown[]>('GET', '/v2/computes')).length).toBe(1)
    expect(await compute.call('GET', '/v2/compute/machine-emulator/images')).toEqual([])
    expect((await ask('GET', projects, undefined, { authorization: `Bearer ${made.token}` })).status).toBe(200)

    // What does not depend on a record is done.
    expect(await call('GET', `${projects}/${found.project_id}`)).toMatchObject({ name: 'found' })
    expect((await ask('DELETE', `${projects}/${placed.project_id}`)).status).toBe(204)
    const names = (await compute.call<{ name: string }[]>('GET', projects)).map(({ name }) => name)
    expect(names).toEqual(['found'])
    const asSession = { cookie, origin: gateway.url }
    const logOut = () => gateway.fetch('/v2/session', { method: 'DELETE', headers: asSession })
    const ended = await logOut()
    expect([ended.status, await ended.text()]).toEqual([507, expect.stringContaining('read-only')])
    expect((await gateway.fetch(projects, { headers: asSession })).status).toBe(401)

    const records = ['computes.json', 'ended-sessions.json', 'image-digests.json', 'placements.log', 'tokens.json']
    await expect.poll(() => told.map((message) => message.split(' ')[0]).sort()).toEqual(records)
    for (const message of told) expect(message).toMatch(/^\S+ could not be saved: .*read-only/)
  },
  60_000,
)
