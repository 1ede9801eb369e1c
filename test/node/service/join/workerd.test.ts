import { join } from 'node:path'
import { build } from 'esbuild'
import { Miniflare } from 'miniflare'
import { expect, onTestFinished, test } from 'vitest'

const source = `
import { AnsweringEnd } from './src/compute/tunnel/answering.ts'
import { AskingEnd } from './src/compute/tunnel/asking.ts'

const wire = (socket) => ({
  send: (data) => socket.send(data),
  close: (code, reason) => socket.close(code, reason),
  drained: async () => {},
})
const listen = (socket, end) => {
  socket.binaryType = 'arraybuffer'
  socket.addEventListener('message', ({ data }) => end.message(typeof data === 'string' ? data : new Uint8Array(data)))
  socket.addEventListener('close', ({ code, reason }) => end.closed(code, reason))
  socket.accept()
}

export default {
  async fetch() {
    const { 0: near, 1: far } = new WebSocketPair()
    const asking = new AskingEnd({
      wire: wire(near), version: '1.0.0', watch: 'busy', greeted: () => { asking.accept(); ready() }, ended() {},
    })
    let ready
    const isReady = new Promise((resolve) => { ready = resolve })
    listen(near, asking)
    far.accept()
    const answering = new AnsweringEnd({
      wire: wire(far),
      who: { version: '1.0.0', compute_id: 'c1', name: 'one' },
      async fetch(request, upgrade) {
        if (request.headers.get('upgrade') === 'websocket') {
          return upgrade(request, { open: (socket) => socket.onMessage((data) => socket.send(data)), abandon() {} })
        }
        return new Response(request.body, { headers: { 'x-url': request.url } })
      },
      greeted() {},
      ended() {},
    })
    listen(far, answering)
    await isReady
    const { signal } = new AbortController()
    const ask = (length) => asking.send({
      method: 'POST', path: '/v2/compute/x', headers: {}, body: new Blob([new Uint8Array(length).fill(7)]).stream(), signal,
    })
    const answers = await Promise.all([ask(10), ask(2_000_000), ask(700_000)])
    const sizes = await Promise.all(answers.map(async (it) => (await new Response(it.whole ?? it.body).arrayBuffer()).byteLength))
    const socket = await asking.openSocket({ path: '/v2/compute/ws', headers: {}, signal })
    const echoed = new Promise((resolve) => socket.onMessage(resolve))
    socket.resume()
    socket.send('text')
    const closed = new Promise((resolve) => socket.onClose(resolve))
    const text = await echoed
    socket.close(1000)
    const code = await closed
    const result = { sizes, url: answers[0].headers.get('x-url'), text, code, left: asking.size }
    asking.close(1001, 'over')
    return Response.json(result)
  },
}
`

test('both ends run in workerd', async () => {
  const root = join(import.meta.dirname, '../../../..')
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: root, loader: 'ts' },
    ...{ bundle: true, format: 'esm', target: 'es2023', write: false, conditions: ['workerd', 'worker', 'import'] },
  })
  const worker = new Miniflare({
    modules: [{ type: 'ESModule', path: 'worker.js', contents: outputFiles[0]?.text ?? '' }],
    compatibilityDate: '2026-07-01',
  })
  onTestFinished(() => worker.dispose())
  const answer = await fetch(await worker.ready)
  expect(await answer.json()).toEqual({
    ...{ sizes: [10, 2_000_000, 700_000], url: 'http://localhost/v2/compute/x', text: 'text', code: 1000, left: 0 },
  })
})
