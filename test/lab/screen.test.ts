import { once } from 'node:events'
import { expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const qemu = requireProgram('qemu-system-x86_64')

/** A websocket to a screen, and the bytes that came. */
async function open(service: TestService, node: string, protocols: string[] = []) {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}${node}/console/vnc`, protocols)
  onTestFinished(() => socket.terminate())
  let shown = Buffer.alloc(0)
  let wake = () => {}
  socket.on('message', (data: Buffer, isBinary) => {
    expect(isBinary).toBe(true)
    shown = Buffer.concat([shown, data])
    wake()
  })
  const closed = once(socket, 'close') as Promise<[number, Buffer]>
  await once(socket, 'open')
  return {
    socket,
    closed,
    /** The next bytes. */
    async take(length: number): Promise<Buffer> {
      while (shown.length < length) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const bytes = shown.subarray(0, length)
      shown = shown.subarray(length)
      return bytes
    },
  }
}

testWith(qemu)('the screen of a machine is there as a websocket that speaks RFB, until the machine stops', async () => {
  const service = await TestService.start()
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const nodes = `/v2/compute/projects/${project_id}/machine-emulator/nodes`
  const input = { name: 'R1', platform: 'x86_64', ram: 16, console_type: 'vnc', options: '-accel tcg' }
  const { node_id } = await service.call<{ node_id: string }>('POST', nodes, input)
  const node = `${nodes}/${node_id}`
  await service.call('POST', `${node}/start`)

  const { socket, closed, take } = await open(service, node, ['binary'])
  expect(socket.protocol).toBe('binary')
  expect((await take(12)).toString()).toBe('RFB 003.008\n')
  socket.send(Buffer.from('RFB 003.008\n'))
  // One security type, none; then its result, and the screen is ours (RFC 6143, 7.1 to 7.3).
  expect([...(await take(2))]).toEqual([1, 1])
  socket.send(Buffer.of(1))
  expect((await take(4)).readUInt32BE()).toBe(0)
  socket.send(Buffer.of(1))
  const server = await take(24)
  expect((await take(server.readUInt32BE(20))).toString()).toContain('R1')
  const [width, height] = [server.readUInt16BE(0), server.readUInt16BE(2)]
  // All of it, raw.
  socket.send(Buffer.of(3, 0, 0, 0, 0, 0, width >> 8, width & 255, height >> 8, height & 255))
  expect([...(await take(2))]).toEqual([0, 0])

  const other = await open(service, node)
  other.socket.send('text')
  expect((await other.closed)[0]).toBe(1003)
  await service.call('POST', `${node}/stop`)
  expect((await closed)[0]).toBe(1000)
})
