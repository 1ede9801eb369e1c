import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { base, newPc, newProject, post } from '../support/api.ts'

async function startedPc(): Promise<string> {
  const { path } = await newPc(await newProject(), { startup_script: 'set pcname PC\n' })
  await post(`${path}/start`)
  return path
}

/** A websocket and what it showed. */
function open(path: string, endpoint: 'ws' | 'watch' = 'ws') {
  const socket = new WebSocket(`${base.replace('http', 'ws')}${path}/console/${endpoint}`)
  onTestFinished(() => socket.terminate())
  let shown = ''
  let wake = () => {}
  socket.on('message', (data: Buffer) => {
    shown += data.toString('latin1')
    wake()
  })
  return {
    socket,
    closed: once(socket, 'close') as Promise<[code: number]>,
    shown: () => shown,
    async shows(text: string) {
      while (!shown.includes(text)) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

test('a console is a websocket for several at once, until the node stops', async () => {
  const path = await startedPc()
  const one = open(path)
  await one.shows('PC> ')
  one.socket.send('echo by text\r')
  await one.shows('by text\r\n')
  const two = open(path)
  await two.shows('by text\r\n')
  two.socket.send(Buffer.from('echo by bytes\r'))
  await one.shows('by bytes\r\n')
  await post(`${path}/stop`)
  expect((await one.closed)[0]).toBe(1000)
  expect((await two.closed)[0]).toBe(1000)
})

test('who watches a console sees it, and types nothing', async () => {
  const path = await startedPc()
  const [watching, typing] = [open(path, 'watch'), open(path)]
  for (const it of [watching, typing]) await it.shows('PC> ')
  watching.socket.send('echo by who watches\r')
  typing.socket.send('echo by who types\r')
  await watching.shows('\nby who types')
  expect(watching.shown()).not.toContain('by who watches')
})

test('a closed console can be opened again', async () => {
  const path = await startedPc()
  for (let times = 0; times < 3; times++) {
    const it = open(path)
    await it.shows('PC> ')
    it.socket.close()
    await it.closed
  }
})

test('a console of a stopped or unknown node is refused with the reason', async () => {
  const { path } = await newPc(await newProject())
  for (const [place, status] of [
    [path, 409],
    [path.replace(/[^/]*$/, crypto.randomUUID()), 404],
  ] as const) {
    const socket = new WebSocket(`${base.replace('http', 'ws')}${place}/console/ws`)
    const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
    expect(answer.statusCode).toBe(status)
  }
})
