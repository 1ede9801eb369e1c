import { expect, test } from 'vitest'
import { createPc, start } from '../support/lab.ts'
import { portRanges, TestService } from '../support/service.ts'

/** A console by websocket: what was shown so far, and a wait for a text in it. */
async function open(service: TestService, node: string) {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}${node}/console/ws`)
  socket.binaryType = 'arraybuffer'
  let shown = ''
  let wake = () => {}
  socket.onmessage = ({ data }) => {
    shown += new TextDecoder().decode(data as ArrayBuffer)
    wake()
  }
  const closed = new Promise<void>((resolve) => {
    socket.onclose = () => resolve()
  })
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve()
    socket.onerror = () => reject(new Error('refused'))
  })
  return {
    socket,
    closed,
    async expect(text: string) {
      while (!shown.includes(text)) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

test('the console is there as a websocket, for several at once, with what was shown before', async () => {
  const service = await TestService.start({ ...portRanges(60), 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const pc = await createPc(service, `/v2/compute/projects/${project_id}`, 1)
  await expect(open(service, pc)).rejects.toThrow('refused')
  expect((await service.fetch(`${pc}/console/ws`)).status).toBe(404)
  await start(service, pc)
  const one = await open(service, pc)
  await one.expect('PC1> ')
  one.socket.send('echo by text\r')
  await one.expect('by text\r\n')
  const two = await open(service, pc)
  await two.expect('by text\r\n')
  two.socket.send(new TextEncoder().encode('echo by bytes\r'))
  await one.expect('by bytes\r\n')
  await service.call('POST', `${pc}/stop`)
  await Promise.all([one.closed, two.closed])
})
