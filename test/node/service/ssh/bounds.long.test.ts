import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort } from '../../../support/ports.ts'
import { TestService } from '../../../support/service.ts'
import { SshSession, sshClient, tokenWithKey } from '../../../support/ssh.ts'

/** A service with a pc that runs, and a client that opens its console. */
async function started() {
  const port = freePort()
  const service = await TestService.start({ 'pc.engine': 'embedded', 'ssh.port': port })
  const { project_id } = await service.call('POST', '/v2/projects', { name: 'wan' })
  const node = { name: 'R1', node_type: 'pc', properties: { startup_script: 'set pcname R1\n' } }
  const { node_id } = await service.call('POST', `/v2/projects/${project_id}/nodes`, node)
  await service.call('POST', `/v2/projects/${project_id}/nodes/${node_id}/start`)
  const { privateKey } = await tokenWithKey(service)
  return { service, client: () => sshClient({ port, username: 'wan/R1', privateKey }) }
}

test('a client that does not read loses its session, and others do not wait', async () => {
  const { client } = await started()
  const [slow, quick] = [await SshSession.shell(await client()), await SshSession.shell(await client())]
  await slow.shows('R1> ')
  slow.channel.pause()
  // More than the window of the channel, and what waits for it.
  const lines = `echo ${'x'.repeat(1000)}\r`.repeat(100)
  let total = 0
  while (total < 6 << 20) {
    quick.shown = ''
    quick.channel.write(lines)
    await quick.shows('x'.repeat(1000), 200)
    total += quick.shown.length
  }
  slow.channel.resume()
  await slow.closed
  expect(slow.shown.length).toBeLessThan(total)
})

test('the host key is kept over a restart, and closed to others', async () => {
  const { service, client } = await started()
  const path = join(service.data, 'ssh-host-key')
  const before = await readFile(path, 'utf8')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await service.end()
  await service.restart()
  expect(await readFile(path, 'utf8')).toBe(before)
  await client()
})
