import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { base, newPc, newProject, post } from '../support/api.ts'

async function startedPc(): Promise<string> {
  const { path } = await newPc(await newProject(), { startup_script: 'set pcname PC\n' })
  await post(`${path}/start`)
  return path
}

const log = async (path: string, lines?: number) =>
  (await fetch(`${base}${path}/console/log${lines === undefined ? '' : `?lines=${lines}`}`)).text()

async function ask(path: string, body: object, init: RequestInit = {}) {
  const answer = await fetch(`${base}${path}`, { method: 'POST', body: JSON.stringify(body), ...init })
  const text = await answer.text()
  return {
    status: answer.status,
    code: answer.headers.get('x-patchbay-error'),
    body: text === '' ? {} : JSON.parse(text),
  }
}

test('input is answered, and a regular expression finds the answer, with the output before it', async () => {
  const path = await startedPc()
  expect((await ask(`${path}/console/expect`, { expect: '^PC> $', within_s: 20 })).status).toBe(200)
  const found = await ask(`${path}/console/expect`, { send: 'echo one two\r', expect: '^(one) (two|three)(four)?$' })
  expect(found).toMatchObject({ status: 200, body: { matched: 'one two', groups: ['one', 'two', null] } })
  expect(found.body.before).toContain('echo one two')
})

test('without an expression, the answer is the output until the console is quiet', async () => {
  const path = await startedPc()
  await ask(`${path}/console/expect`, { expect: 'PC> ', within_s: 20 })
  const said = await ask(`${path}/console/expect`, { send: 'echo all of it\r', quiet_s: 0.5, echoes: true })
  expect(said).toMatchObject({
    status: 200,
    body: { matched: '', before: expect.stringContaining('all of it'), groups: [] },
  })
  // Output that never pauses ends with the wait.
  const busy = await ask(`${path}/console/expect`, { send: 'ping 127.0.0.1 -t\r', quiet_s: 60, within_s: 0.2 })
  expect([busy.status, busy.body.matched]).toEqual([200, ''])
  const neither = await ask(`${path}/console/expect`, { send: 'x' })
  expect([neither.status, neither.body.message]).toEqual([400, 'body: expected `expect`, `quiet_s`, or both'])
})

test('output that does not come in time is a conflict with the last lines', async () => {
  const path = await startedPc()
  await ask(`${path}/console/expect`, { expect: 'PC> ', within_s: 20 })
  const { status, code, body } = await ask(`${path}/console/expect`, { expect: 'nothing like it', within_s: 0 })
  expect([status, code]).toEqual([409, 'not-in-time'])
  expect(body.message).toContain('PC>')
})

test('with a text to type, only later output counts', async () => {
  const path = await startedPc()
  await ask(`${path}/console/expect`, { expect: 'PC> ', within_s: 20 })
  await ask(`${path}/console/expect`, { send: 'echo once\r', expect: '^once$' })
  const again = await ask(`${path}/console/expect`, { send: '\r', expect: 'once', within_s: 0.2 })
  expect(again.status).toBe(409)
})

test('an expression that is not valid or too large is refused', async () => {
  const path = await startedPc()
  for (const wrong of ['(', '(?=x)', '(.{0,1000}){0,1000}', '(.{0,999}|a)*b', 'x'.repeat(1001)])
    expect((await ask(`${path}/console/expect`, { expect: wrong })).status).toBe(400)
})

test('a wait ends when the node stops', async () => {
  const path = await startedPc()
  const waiting = ask(`${path}/console/expect`, { expect: 'nothing like it', within_s: 60 })
  await ask(`${path}/console/expect`, { expect: 'PC> ', within_s: 20 })
  await post(`${path}/stop`)
  expect(await waiting).toMatchObject({ status: 409, code: 'node-stopped' })
})

test('the console is read as text, with the requested number of lines', async () => {
  const path = await startedPc()
  await ask(`${path}/console/expect`, { expect: 'PC> ', within_s: 20 })
  await ask(`${path}/console/expect`, { send: 'echo last\r', expect: '^last\\s+PC> $' })
  expect(await log(path)).toContain('PC> echo last\nlast\n')
  expect(await log(path, 1)).toBe('PC> ')
  expect((await fetch(`${base}${path}/console/log?lines=0`)).status).toBe(400)
  await post(`${path}/stop`)
  expect(await log(path)).toBe('')
})

test('a websocket begins with the requested number of lines of the scroll-back', async () => {
  const path = await startedPc()
  await ask(`${path}/console/expect`, { expect: 'PC> ', within_s: 20 })
  await ask(`${path}/console/expect`, { send: 'echo earlier\r', expect: '^earlier\\s+PC> $' })
  const url = `${base.replace('http', 'ws')}${path}/console/ws`
  for (const lines of [1, 2, 99_999]) {
    const socket = new WebSocket(`${url}?lines=${lines}`)
    onTestFinished(() => socket.terminate())
    let shown = ''
    const seen = new Promise<void>((resolve) =>
      socket.on('message', (data: Buffer) => {
        shown += data.toString()
        if (shown.endsWith('PC> ')) resolve()
      }),
    )
    await seen
    expect(shown.replaceAll('\r', '')).toBe(await log(path, lines))
    socket.terminate()
  }
  expect((await fetch(`${base}${path}/console/ws?lines=0`)).status).toBe(400)
})

test('a websocket without the scroll-back shows only new output', async () => {
  const path = await startedPc()
  await ask(`${path}/console/expect`, { expect: 'PC> ', within_s: 20 })
  await ask(`${path}/console/expect`, { send: 'echo earlier\r', expect: '^earlier\\s+PC> $' })
  const socket = new WebSocket(`${base.replace('http', 'ws')}${path}/console/ws?replay=0`)
  onTestFinished(() => socket.terminate())
  let shown = ''
  const seen = new Promise<void>((resolve) =>
    socket.on('message', (data: Buffer) => {
      shown += data.toString()
      if (shown.includes('later')) resolve()
    }),
  )
  await once(socket, 'open')
  socket.send('echo later\r')
  await seen
  expect(shown).not.toContain('earlier')
})

test('a node is ready when its console has shown a text and a TCP port of the host accepts', async () => {
  const path = await startedPc()
  const server = createServer((client) => client.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  onTestFinished(() => void server.close())
  const ready = { console: 'PC> ', tcp: port, seconds: 0.01, within_s: 20 }
  expect((await ask(`${path}/ready`, ready)).status).toBe(204)
  expect(await ask(`${path}/ready`, { ...ready, console: 'nothing like it', within_s: 0 })).toMatchObject({
    status: 409,
    code: 'not-in-time',
  })
  await post(`${path}/stop`)
  expect(await ask(`${path}/ready`, ready)).toMatchObject({ status: 409, code: 'node-stopped' })
})
