import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { createPc, openConsole, reserve, start } from '../../../support/lab.ts'
import { portRanges } from '../../../support/ports.ts'
import { TestService } from '../../../support/service.ts'

const settings = portRanges({ udp: 5, console: 10, vnc: 2 })

const newProject = async (service: TestService) => {
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  return `/v2/compute/projects/${project_id}`
}

test('a UDP port that was reserved is still reserved after the service was killed, and free when its project is closed', async () => {
  const service = await TestService.start({ ...settings, 'pc.engine': 'embedded' })
  const [one, two] = [await newProject(service), await newProject(service)]
  const kept = [await reserve(service, one), await reserve(service, one)]
  const given = await reserve(service, one)
  await service.call('DELETE', `${one}/ports/udp/${given}`)
  await service.kill('SIGKILL')
  await service.restart()
  const others = [await reserve(service, two), await reserve(service, two), await reserve(service, two)]
  expect([...kept, ...others].sort()).toEqual(
    [0, 1, 2, 3, 4].map((index) => (settings.udp_port_range?.[0] ?? 0) + index),
  )
  expect((await service.fetch(`${two}/ports/udp`, { method: 'POST' })).status).toBe(409)
  await service.call('POST', `${one}/close`)
  expect([await reserve(service, two), await reserve(service, two)].sort()).toEqual(kept.sort())
})

test('a reserved port that a NIO uses is that of the NIO after a restart, and free when the NIO is deleted', async () => {
  const service = await TestService.start({ ...settings, 'pc.engine': 'embedded' })
  const project = await newProject(service)
  const pc = await createPc(service, project, 1)
  const lport = await reserve(service, project)
  const nio = `${pc}/adapters/0/ports/0/nio`
  await service.call('POST', nio, { type: 'nio_udp', lport, rhost: '127.0.0.1', rport: 40_000 })
  await service.kill('SIGKILL')
  await service.restart()
  const used = async () => (await service.call<{ udp_ports: number[] }>('GET', '/v2/compute/network/ports')).udp_ports
  expect(await service.call('GET', nio)).toMatchObject({ lport })
  expect(await used()).toContain(lport)
  await service.call('DELETE', nio)
  expect(await used()).not.toContain(lport)
  await service.kill('SIGKILL')
  await service.restart()
  await service.call('GET', pc)
  expect(await used()).not.toContain(lport)
})

test('a reset of a console disconnects its telnet clients, and new ones get the scroll-back', async () => {
  const service = await TestService.start({ ...settings, 'pc.engine': 'embedded' })
  const pc = await createPc(service, await newProject(service), 1)
  await start(service, pc)
  const { console: port } = await service.call<{ console: number }>('GET', pc)
  const client = connect(port, '127.0.0.1').resume()
  await once(client, 'data')
  const ended = once(client, 'end')
  await service.call('POST', `${pc}/console/reset`)
  await ended
  await openConsole(service, pc)
})
