import { expect, test } from 'vitest'
import { callsAt } from '../../../support/calls.ts'
import { freePort } from '../../../support/ports.ts'
import { TestService } from '../../../support/service.ts'
import { SshSession, sshClient, tokenWithKey } from '../../../support/ssh.ts'

test('a gateway opens the consoles of its computes, and each organization has its own', async () => {
  const [token, port] = ['admin-of-tests-0123456789', freePort()]
  const gateway = await TestService.start({ gateway: true, token, 'ssh.port': port })
  const compute = await TestService.start({ 'pc.engine': 'embedded' })
  const admin = callsAt(gateway.url, token)
  const { hostname, port: computePort } = new URL(compute.url)
  await admin.call('POST', '/v2/computes', {
    name: 'rack',
    protocol: 'http',
    host: hostname,
    port: Number(computePort),
  })
  const { project_id } = await admin.call('POST', '/v2/projects', { name: 'wan' })
  const node = { name: 'R1', node_type: 'pc', properties: { startup_script: 'set pcname R1\n' } }
  const { node_id } = await admin.call('POST', `/v2/projects/${project_id}/nodes`, node)
  await admin.call('POST', `/v2/projects/${project_id}/nodes/${node_id}/start`)

  const ann = await tokenWithKey(admin)
  const bob = await tokenWithKey(admin, { name: 'bob', role: 'read' })
  const watching = await SshSession.shell(await sshClient({ port, username: 'wan/R1', privateKey: bob.privateKey }))
  await watching.shows('R1> ')
  watching.channel.write('echo typed by bob\r')
  const session = await SshSession.exec(
    await sshClient({ port, username: 'wan/R1', privateKey: ann.privateKey }),
    'echo by ann',
  )
  expect(await session.closed).toBe(0)
  expect(session.shown).toMatch(/^echo by ann\nby ann\n/)
  await watching.shows('by ann')
  expect(watching.shown).not.toContain('typed by bob')

  await admin.call('POST', '/v2/organizations', { organization_id: 'school', name: 'School' })
  const headers = { 'x-patchbay-organization': 'school', authorization: `Bearer ${token}` }
  const school = callsAt(gateway.url, undefined, { headers })
  const { privateKey } = await tokenWithKey(school, { name: 'eve' })
  // Its keys are looked for where the user name says, and its tokens see its own labs.
  await expect(sshClient({ port, username: 'wan/R1', privateKey })).rejects.toThrow('authentication')
  const own = await SshSession.exec(await sshClient({ port, username: '/school/wan/R1', privateKey }), 'echo')
  expect(await own.closed).toBe(1)
  expect(own.shown).toContain('there is no project wan')
})
