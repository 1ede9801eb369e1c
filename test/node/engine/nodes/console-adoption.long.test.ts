import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { createPc } from '../../../support/lab.ts'
import { TestService } from '../../../support/service.ts'
import { Terminal } from '../../../support/terminal.ts'

interface Shown {
  readonly node_id: string
  readonly status: string
  readonly console: number
}

const pcs = 8
const rounds = 7

test('after a kill of a service that starts nodes with taken console ports, each shown console has a listener', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const nodes = await Promise.all(Array.from({ length: pcs }, (_, index) => createPc(service, project, index + 1)))
  const list = () => service.call<Shown[]>('GET', `${project}/pc/nodes`)
  let started = 0
  for (let round = 1; round <= rounds; round++) {
    const taken = await Promise.all((await list()).map(({ console }) => occupy(console)))
    // Killed when so many of the starts have answered: the others are under way.
    let answered = 0
    await new Promise<void>((resolve) => {
      for (const node of nodes) {
        const settled = () => {
          answered += 1
          if (answered >= round) resolve()
        }
        service.call('POST', `${node}/start`).then(settled, settled)
      }
    })
    await service.kill('SIGKILL')
    for (const server of taken) server.close()
    await service.restart()
    const running = (await list()).filter(({ status }) => status === 'started')
    started += running.length
    expect(new Set(running.map(({ console }) => console)).size).toBe(running.length)
    for (const { console } of running) {
      const terminal = await Terminal.connect(console)
      await terminal.expect(/PC\d> /)
    }
    for (const node of nodes) await service.call('POST', `${node}/stop`)
  }
  expect(started).toBeGreaterThan(pcs)
})

/** Another program has the console port. */
async function occupy(port: number) {
  const server = createServer((socket) => socket.destroy())
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return server
}
