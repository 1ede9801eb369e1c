import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createPc, start } from '../../support/lab.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'

test('a large paste into a pc reaches its end, though its client reads slowly', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const pc = await createPc(service, `/v2/compute/projects/${project_id}`, 1)
  await start(service, pc)
  const { console: port } = await service.call<{ console: number }>('GET', pc)
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  const lines = 2000
  socket.write(Array.from({ length: lines }, (_, line) => `show ip\recho line ${line}\r`).join(''))
  let shown = ''
  // The prompt, and not the echo of what is typed, comes before it.
  const isOver = () => shown.includes(`> line ${lines - 1}\r`)
  const deadline = Date.now() + hangMs
  // As over a slow line: a piece, and then nothing for a moment.
  for await (const bytes of socket) {
    shown = shown.slice(-200) + (bytes as Buffer).toString('latin1')
    if (isOver() || Date.now() > deadline) break
    await pause(2)
  }
  expect(shown).toContain(`> line ${lines - 1}\r`)
})
