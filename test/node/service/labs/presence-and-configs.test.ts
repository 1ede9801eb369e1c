import { describe, expect, it } from 'vitest'
import type { LabPresence } from '../../../../src/model/lab/presence.ts'
import type { LabProject } from '../../../../src/model/lab/project.ts'
import { hangMs } from '../../../support/limits.ts'
import { TestService } from '../../../support/service.ts'

const lab = '/v2/projects/class'

async function service() {
  const started = await TestService.start({ 'pc.engine': 'embedded' })
  await started.call('POST', '/v2/projects', { name: 'class' })
  await started.call('POST', `${lab}/nodes`, { name: 'PC1', node_type: 'pc' })
  return started
}

describe('presence', () => {
  it('shows the selection of a client to others, once for each change', async () => {
    const it = await service()
    const feed = await it.fetch(`${lab}/notifications`)
    for (const selection of [['a'], ['a'], ['a', 'b']])
      await it.call('POST', `${lab}/presence`, { selection, client: 'left' })
    const all = await it.call<LabPresence[]>('POST', `${lab}/presence`, { selection: [], client: 'right' })
    expect(all.map(({ client, selection }) => [client, selection])).toEqual([
      ['left', ['a', 'b']],
      ['right', []],
    ])
    let text = ''
    for await (const piece of feed.body as unknown as AsyncIterable<Uint8Array>) {
      text += new TextDecoder().decode(piece)
      if (text.includes('"right"')) break
    }
    const told = text
      .split('\n')
      .flatMap((line) => (line.includes('"presence"') ? [JSON.parse(line).event.selection] : []))
    expect(told).toEqual([['a'], ['a', 'b'], []])
  })

  it('has the name that a client says, where nobody is asked for credentials', async () => {
    const it = await service()
    const tell = (body: object) => it.call('POST', `${lab}/presence`, { selection: [], client: 'a window', ...body })
    const present = async () => (await it.call<LabProject>('GET', lab)).present
    await tell({})
    expect(await present()).toEqual(['anybody'])
    await tell({ name: 'Anna' })
    expect(await present()).toEqual(['Anna'])
  })

  it('has the name of the credentials, whatever the client says', async () => {
    const token = 'presence-of-tests-0123456789'
    const it = await TestService.start({ 'pc.engine': 'embedded', token })
    const ask = (path: string, body?: object) =>
      it.fetch(path, {
        headers: { authorization: `Bearer ${token}` },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      })
    await ask('/v2/projects', { name: 'class' })
    await ask(`${lab}/presence`, { selection: [], name: 'Anna' })
    expect(await (await ask(lab)).json()).toMatchObject({ present: ['the configured token'] })
  })

  it('has a limit', async () => {
    const it = await service()
    const tell = (client: string) =>
      it.fetch(`${lab}/presence`, { method: 'POST', body: JSON.stringify({ selection: [], client }) })
    for (let client = 0; client < 64; client++) expect((await tell(String(client))).status).toBe(200)
    expect((await tell('one more')).status).toBe(429)
  })
})

describe('the configuration of a node', () => {
  it('is read and replaced as text, with If-Match only when unchanged', async () => {
    const it = await service()
    const at = `${lab}/nodes/PC1/config`
    const before = await it.fetch(at)
    const etag = before.headers.get('etag') ?? ''
    expect([await before.text(), before.headers.get('content-type')]).toEqual(['', 'text/plain; charset=utf-8'])
    const written = await it.fetch(at, { method: 'PUT', body: 'ip 10.0.0.1/24\n', headers: { 'if-match': etag } })
    expect(written.status).toBe(204)
    const read = await it.fetch(at)
    expect([await read.text(), read.headers.get('etag')]).toEqual(['ip 10.0.0.1/24\n', written.headers.get('etag')])
    const late = await it.fetch(at, { method: 'PUT', body: 'echo late', headers: { 'if-match': etag } })
    expect([late.status, late.headers.get('x-patchbay-error')]).toEqual([412, 'changed-meanwhile'])
    const known = await it.fetch(at, { headers: { 'if-none-match': written.headers.get('etag') ?? '' } })
    expect(known.status).toBe(304)
    expect(await it.call('GET', `${lab}/nodes/PC1`)).toMatchObject({
      properties: { startup_script: 'ip 10.0.0.1/24\n' },
    })
  })

  it('has the names of its kind, and only text', async () => {
    const it = await service()
    const at = `${lab}/nodes/PC1/config`
    expect((await it.fetch(`${at}?name=private`)).status).toBe(404)
    expect((await it.fetch(at, { method: 'PUT', body: new Uint8Array([0xff, 0xfe]) })).status).toBe(400)
  })
})

it('the statistics show the load of each compute', async () => {
  const it = await service()
  await expect
    .poll(() => it.call('GET', '/v2/statistics'), { timeout: hangMs })
    .toEqual([
      {
        compute_id: 'local',
        compute_name: expect.any(String),
        statistics: { cpu_usage_percent: expect.any(Number), memory_usage_percent: expect.any(Number) },
      },
    ])
})
