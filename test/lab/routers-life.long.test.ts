import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { iourc, netioDirectory, requireGcc } from '../support/iou.ts'
import { start, status } from '../support/lab.ts'
import { holdLock } from '../support/python.ts'
import { RouterLab } from '../support/router-lab.ts'
import type { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const gcc = requireGcc()
let service: TestService

beforeAll(async () => {
  if (!gcc.skip) service = (await RouterLab.startForAll()).service
})
afterAll(() => service?.close())

const startup = (directory: string) => readFile(join(directory, 'startup-config.cfg'), 'utf8')

testWith(gcc)(
  'what was typed at a console outlives a killed service, a stop, a start, and a project that is closed',
  async () => {
    const { project, projectId, router, view, console, booted } = await RouterLab.onNewProject(service)
    const node = await router('R1')
    const v1 = node.replace('/v2/compute', '/v1').replace('iou/nodes', 'iou/vms')
    await start(service, node)
    const { node_directory } = await view(node)
    let shell = await booted(node)
    await shell.configure('hostname first')
    await shell.run('write memory')
    // At once: nobody has to have looked at it before.
    await service.call('POST', `/v1/projects/${projectId}/commit`)
    expect(await startup(node_directory)).toContain('hostname first')

    await service.kill('SIGKILL')
    await shell.configure('hostname second')
    await shell.run('write memory')
    await service.restart()
    expect(await status(service, node)).toBe('started')
    expect(await service.call('GET', `${v1}/initial_config`)).toEqual({
      content: expect.stringContaining('hostname second'),
    })
    await service.call('POST', `${node}/stop`)
    expect(await startup(node_directory)).toContain('hostname second')
    await start(service, node)
    shell = await console(node)
    await shell.expect('second>')

    // A client gives another one while it runs: that is what it starts with.
    await service.call('PUT', v1, { startup_config_content: 'hostname given\n' })
    await service.call('POST', `/v1/projects/${projectId}/commit`)
    await service.call('POST', `${node}/reload`)
    shell = await console(node)
    await shell.expect('given>')

    await shell.configure('hostname third')
    await shell.run('write memory')
    await service.call('POST', `${project}/close`)
    expect(await startup(node_directory)).toContain('hostname third')
    // Somebody else may have its number by then.
    const other = await RouterLab.onNewProject(service)
    const { application_id } = await other.view(await other.router('R2'))
    await service.call('POST', '/v2/compute/projects', { project_id: projectId, name: 'iou' })
    await service.call('POST', `${node}/start`, { iourc_content: iourc() })
    shell = await console(node)
    await shell.expect('third>')
    const reopened = await view(node)
    expect([reopened.node_directory, reopened.application_id === application_id]).toEqual([node_directory, false])
  },
)

testWith(gcc)('the actions of a router that runs answer as the specification says', async () => {
  const { router, booted } = await RouterLab.onNewProject(service)
  const v2 = await router('R1')
  const v1 = v2.replace('/v2/compute', '/v1').replace('iou/nodes', 'iou/vms')
  const act = async (node: string, action: string) => {
    const answer = await service.fetch(`${node}/${action}`, { method: 'POST', body: '{}' })
    const text = await answer.text()
    return [answer.status, text === '' ? '' : (JSON.parse(text) as { status: string }).status]
  }
  for (let time = 0; time < 2; time++) expect(await act(v2, 'start')).toEqual([200, 'started'])
  expect(await act(v1, 'start')).toEqual([204, ''])
  const shell = await booted(v2)
  for (const node of [v1, v2]) {
    for (const action of ['suspend', 'resume']) expect(await act(node, action)).toEqual([204, ''])
  }
  // Nothing of that was a restart.
  expect(await shell.run('enable')).toBe('')
  expect(await act(v1, 'reload')).toEqual([204, ''])
  await booted(v2)
  expect(await status(service, v2)).toBe('started')
  for (const node of [v1, v2]) expect(await act(node, 'stop')).toEqual([204, ''])
  expect(await act(v2, 'reload')).toEqual([204, ''])
  expect(await status(service, v2)).toBe('started')
  expect((await service.fetch(v1, { method: 'DELETE' })).status).toBe(204)
  expect((await service.fetch(v2)).status).toBe(404)
})

testWith(gcc)('a copy of a router that runs has its own number, and both run', async () => {
  const { router, view, booted, link } = await RouterLab.onNewProject(service)
  const [a, b] = [await router('A'), await router('B', { ethernet_adapters: 1 })]
  await start(service, a)
  const left = await booted(a)
  await left.setAddress('Ethernet1/0', '10.0.0.1')
  await left.configure('hostname A')
  await left.run('write memory')
  const destination_node_id = b.split('/').at(-1)
  expect(await service.call('POST', `${a}/duplicate`, { destination_node_id })).toMatchObject({ ethernet_adapters: 2 })
  await link([a, 1, 0], [b, 1, 0])
  await start(service, b)
  const right = await booted(b)
  await right.run('enable')
  const copied = await right.run('show startup-config')
  for (const text of ['hostname B\n', 'ip address 10.0.0.1 ']) expect(copied).toContain(text)
  expect((await view(a)).application_id).not.toBe((await view(b)).application_id)
  await right.setAddress('Ethernet1/0', '10.0.0.2')
  expect(await left.ping('10.0.0.2', { repeat: 2 })).toBe(2)
})

testWith(gcc)("services of one user do not get in each other's way, nor do other programs", async () => {
  const [one, two] = await Promise.all([RouterLab.onNewProject(service), RouterLab.start()])
  const numberOf = async (lab: RouterLab, node: string) => (await lab.view(node)).application_id
  const theirs = await two.router('theirs')
  await start(two.service, theirs)
  const id = await numberOf(two, theirs)
  const shell = await two.booted(theirs)
  await shell.configure('hostname kept')
  await shell.run('write memory')
  // What runs is not given out, and by the other service it would be the next one.
  const ours = await one.router('ours')
  expect(await numberOf(one, ours)).not.toBe(id)
  await start(one.service, ours)
  await one.booted(ours)

  // Meanwhile another program takes the number of one that is stopped.
  await two.service.call('POST', `${theirs}/stop`)
  const feed = await two.service.fetch(`${two.project}/notifications`)
  const reader = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
  const release = await holdLock(join(netioDirectory, `${id}.lck`))
  await start(two.service, theirs)
  expect(await numberOf(two, theirs)).not.toBe(id)
  expect(await (await two.console(theirs)).expect('>')).toContain('kept>')
  let seen = ''
  const why = `theirs: another program of this host uses the application id ${id}; it is now `
  while (!seen.includes(why)) seen += (await reader?.read())?.value ?? ''
  await reader?.cancel()
  await release?.()

  // The same of one to which something is attached before it runs.
  const { third, before, releaseBridge } = await held(two)
  await two.link([third, 0, 0], [theirs, 0, 0])
  expect(await numberOf(two, third)).not.toBe(before)
  await start(two.service, third)
  await (await two.booted(third)).setAddress('Ethernet0/0', '10.0.0.3')
  const kept = await two.console(theirs)
  await kept.setAddress('Ethernet0/0', '10.0.0.1')
  expect(await kept.ping('10.0.0.3', { repeat: 2 })).toBe(2)
  await releaseBridge()
})

/** A router of whose number another program has the bridge. */
async function held(lab: RouterLab) {
  for (;;) {
    const third = await lab.router('third')
    const before = (await lab.view(third)).application_id
    const releaseBridge = await holdLock(join(netioDirectory, `${before + 512}.lck`))
    if (releaseBridge !== undefined) return { third, before, releaseBridge }
    // A service of another test was faster.
    await lab.service.call('DELETE', third)
  }
}
