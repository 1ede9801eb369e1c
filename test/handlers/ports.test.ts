import { expect, inject, test } from 'vitest'
import { body, del, newPc, newProject, post, put, sameHost, send } from '../support/api.ts'
import { openFeed } from '../support/feed.ts'
import { freePort } from '../support/ports.ts'

const refused = (text: string | RegExp) => ({ message: expect.stringMatching(text), status: 409 })
const udp = (lport: number, rport: number) => ({ type: 'nio_udp', lport, rhost: '127.0.0.1', rport })
const reserve = async (project: { v2: string }) =>
  (await body<{ udp_port: number }>(post(`${project.v2}/ports/udp`))).udp_port

for (const state of ['stopped', 'running'] as const) {
  test(`a change to a console port that is taken or out of range is refused, and a ${state} node keeps its own`, async () => {
    const project = await newProject({ name: 'lab', ...sameHost })
    const [pc, other] = [await newPc(project), await newPc(project, { name: 'other' })]
    if (state === 'running') expect((await post(`${pc.path}/start`)).status).toBe(200)
    const [before, { console: taken }] = [await body(send(pc.path)), await body<{ console: number }>(send(other.path))]
    const v1 = `${project.v1}/pc/vms/${pc.id}`
    for (const path of [pc.path, v1]) {
      expect(await body(put(path, { name: 'new', console: taken }))).toEqual(
        refused(/^console: .*in use by another node/),
      )
      expect(await body(put(path, { name: 'new', console: 22 }))).toEqual(refused(/^console: .*console_port_range/))
    }
    expect(await body(send(pc.path))).toEqual(before)
    // Its own is no other one; and one that is free is given.
    expect((await put(pc.path, { console: before.console })).status).toBe(200)
    expect((await del(other.path)).status).toBe(204)
    expect(await body(put(pc.path, { console: taken }))).toMatchObject({ console: taken })
  })
}

test('a node that is created with an unavailable console port gets another one, and a warning says why', async () => {
  const project = await newProject({ name: 'lab', ...sameHost })
  const { console: taken } = await body<{ console: number }>(send((await newPc(project)).path))
  const feed = await openFeed(`${project.v2}/notifications`)
  for (const [wanted, reason] of [
    [taken, 'in use by another node'],
    [22, 'outside console_port_range'],
  ] as const) {
    const node = await body<{ console: number }>(post(`${project.v2}/pc/nodes`, { name: 'PC2', console: wanted }))
    expect(node.console).not.toBe(wanted)
    expect((await feed.next()).action).toBe('node.created')
    const { action, event } = await feed.next()
    expect([action, event.message]).toEqual([
      'log.warning',
      expect.stringMatching(new RegExp(`^PC2: console port ${wanted} is ${reason}.*; it is now ${node.console}$`)),
    ])
  }
})

test('a NIO that replaces another one is reported; the same one again, or a change in place, is not', async () => {
  const project = await newProject({ name: 'lab', ...sameHost })
  const pc = await newPc(project)
  const nio = `${pc.path}/adapters/0/ports/0/nio`
  const [first, second] = [await reserve(project), await reserve(project)]
  const feed = await openFeed(`${project.v2}/notifications`)
  expect((await post(nio, udp(first, 40_000))).status).toBe(201)
  expect((await post(nio, udp(first, 40_000))).status).toBe(201)
  expect((await put(nio, udp(first, 40_001))).status).toBe(201)
  expect((await post(nio, udp(second, 40_002))).status).toBe(201)
  expect(await feed.next()).toMatchObject({
    action: 'log.warning',
    event: {
      message: `PC: the NIO of adapter 0, port 0 (UDP port ${first} to 127.0.0.1:40001) was replaced by UDP port ${second} to 127.0.0.1:40002`,
    },
  })
})

test('a local port outside of the range is taken only in local mode, and only when it is free', async () => {
  const project = await newProject({ name: 'lab', ...sameHost })
  const [pc, other] = [await newPc(project), await newPc(project, { name: 'other' })]
  const at = (node: { path: string }) => `${node.path}/adapters/0/ports/0/nio`
  const outside = udp(freePort(), 40_000)
  if (inject('isWorker')) {
    expect(await body(post(at(pc), outside))).toEqual(refused(/^lport: .*udp_port_range.*ports\/udp/))
    return
  }
  expect((await post(at(pc), outside)).status).toBe(201)
  expect((await post(at(other), outside)).status).toBe(409)
})

test('a reset of a console disconnects its clients and serves new ones, and the guest keeps running', async () => {
  const project = await newProject({ name: 'lab', ...sameHost })
  const pc = await newPc(project)
  expect(await body(post(`${pc.path}/console/reset`))).toEqual(refused('is not running'))
  const { console } = await body<{ console: number }>(post(`${pc.path}/start`))
  const open = () => new WebSocket(`${inject('baseUrl').replace('http', 'ws')}${pc.path}/console/ws`)
  const socket = open()
  await new Promise((resolve) => socket.addEventListener('message', resolve, { once: true }))
  const closed = new Promise((resolve) => socket.addEventListener('close', resolve, { once: true }))
  const answer = await post(`${pc.path}/console/reset`)
  expect([answer.status, await answer.text()]).toEqual([204, ''])
  await closed
  const next = open()
  await new Promise((resolve) => next.addEventListener('message', resolve, { once: true }))
  next.close()
  expect(await body(send(pc.path))).toMatchObject({ status: 'started', console })
  expect((await post(`${pc.path.replace(pc.id, crypto.randomUUID())}/console/reset`)).status).toBe(404)
})

test('a UDP port is checked when the project has reserved it, and the candidates and the key are valid', async () => {
  const project = await newProject({ name: 'lab', ...sameHost })
  const port = await reserve(project)
  const at = `${project.v2}/ports/udp/${port}`
  const { addresses } = await body<{ addresses: string[] }>(send(`${at}/candidates`))
  expect(addresses.filter((address) => /^(127\.|::1$|169\.254\.|fe80:)/.test(address))).toEqual([])
  const check = { end: 'a', key: 'ab'.repeat(32), candidates: [{ host: '127.0.0.1', port: 40_000 }] }
  // It is of this host, and who asks did not show that the other compute is on it.
  expect(await body(post(`${at}/check`, check))).toEqual({
    paths: [],
    tried: [
      { host: '127.0.0.1', port: 40_000, outcome: 'failed', reason: expect.stringContaining('not on this host') },
    ],
  })
  for (const [wrong, message] of [
    [{ key: 'short' }, /^key: .*64 hexadecimal digits/],
    [{ candidates: [{ host: '192.0.2.1', port: 53 }] }, /^candidates\[0\]\.port: /],
    [{ candidates: [] }, /^candidates: /],
    [{ candidates: Array(13).fill({ host: '192.0.2.1', port: 40_000 }) }, /^candidates: /],
  ] as const)
    expect(await body(post(`${at}/check`, { ...check, ...wrong }))).toEqual({
      message: expect.stringMatching(message),
      status: 400,
    })
  expect((await del(at)).status).toBe(204)
  for (const answer of [send(`${at}/candidates`), post(`${at}/check`, check)])
    expect(await body(answer)).toEqual({ message: expect.stringMatching(/^udp_port: .*not reserved/), status: 404 })
})
