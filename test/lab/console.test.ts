import { expect, test } from 'vitest'
import { createPc, start } from '../support/lab.ts'
import { TestService } from '../support/service.ts'
import { openSocketConsole } from '../support/socket-console.ts'

test('the console is a websocket for several clients at once, with its scroll-back', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const pc = await createPc(service, `/v2/compute/projects/${project_id}`, 1)
  await expect(openSocketConsole(service, pc)).rejects.toThrow('refused')
  expect((await service.fetch(`${pc}/console/ws`)).status).toBe(404)
  await start(service, pc)
  const one = await openSocketConsole(service, pc)
  await one.expect('PC1> ')
  one.socket.send('echo by text\r')
  await one.expect('by text\r\n')
  const two = await openSocketConsole(service, pc)
  await two.expect('by text\r\n')
  two.socket.send(new TextEncoder().encode('echo by bytes\r'))
  await one.expect('by bytes\r\n')
  await service.call('POST', `${pc}/stop`)
  await Promise.all([one.closed, two.closed])
})
