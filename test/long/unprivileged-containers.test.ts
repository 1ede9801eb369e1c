import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { findLimiter } from '../../runtime/node/drivers/container/control-groups.ts'
import { launcherOfOther, otherUid } from '../support/confined.ts'
import { requireContainers } from '../support/container-image.ts'
import { addImage, createContainer, createPair, createProject, Shell } from '../support/container-lab.ts'
import { expectTraces, leaveTraces, withFile } from '../support/container-traces.ts'
import { start } from '../support/lab.ts'
import { requireProgram, requireRoot } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { openSocketConsole } from '../support/socket-console.ts'
import { testWith } from '../support/test-with.ts'

const firstId = 700_000

/**
 * A service that runs as an ordinary user with sub-ids, and with a TUN device that all may open, in a mount namespace of its own: tests
 * change nothing of the machine.
 */
async function startAsUser(): Promise<TestService> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-user-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await chmod(directory, 0o755)
  const [passwd, ids, tun] = ['passwd', 'ids', 'tun'].map((name) => join(directory, name)) as [string, string, string]
  // newuidmap(1) asks who its caller is.
  const account = `anna:x:${otherUid}:${otherUid}::/:/bin/sh\n`
  await writeFile(passwd, (await readFile('/etc/passwd', 'utf8')) + account)
  await writeFile(ids, `anna:${firstId}:65536\n`)
  execFileSync('mknod', ['-m', '0666', tun, 'c', '10', '200'])
  const binds = [
    [passwd, '/etc/passwd'],
    [ids, '/etc/subuid'],
    [ids, '/etc/subgid'],
    [tun, '/dev/net/tun'],
  ].map((pair) => `mount --bind ${pair.join(' ')}`)
  const launcher = ['unshare', '--mount', 'sh', '-c', `${binds.join(' && ')} && exec "$@"`, 'sh', ...launcherOfOther]
  return TestService.start({}, launcher)
}

/** Why the user cannot limit containers; undefined: he can. */
function limiterReason(): string | undefined {
  const found = findLimiter({ uid: otherUid, proc: '/proc/self', systemd: '/run/systemd/system' })
  return 'reason' in found ? found.reason : undefined
}

const needed = [await requireContainers(), requireRoot(), requireProgram('newuidmap'), requireProgram('setpriv')]

testWith(...needed)('an ordinary user copies, exports and imports what containers have written', async () => {
  const service = await startAsUser()
  await addImage(service)
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/projects', { name: 'lab' })
  const lab = `/v2/projects/${project_id}`
  const properties = { image: 'busybox.tar', ...withFile }
  await service.call('POST', `${lab}/nodes`, { name: 'C1', node_type: 'container', properties })
  await start(service, `${lab}/nodes/C1`)
  await leaveTraces(service, `${lab}/nodes/C1`)
  const { node_id } = await service.call<{ node_id: string }>('POST', `${lab}/nodes/C1/duplicate`, { x: 1, y: 1 })
  await expectTraces(service, `${lab}/nodes/${node_id}`)
  await service.call('POST', `${lab}/nodes/stop`)
  const exported = await service.fetch(`${lab}/export`)
  expect(exported.status).toBe(200)
  const other = await TestService.start()
  await addImage(other)
  const id = '11111111-2222-4333-8444-555555555555'
  const body = await exported.arrayBuffer()
  const imported = await other.fetch(`/v2/projects/${id}/import?name=imported`, { method: 'POST', body })
  expect(imported.status).toBe(201)
  await other.call('POST', `/v2/projects/${id}/open`)
  await expectTraces(other, `/v2/projects/${id}/nodes/C1`)
  await other.call('POST', `/v2/projects/${id}/close`)
})

testWith(...needed)('an ordinary user with sub-ids runs containers, and deletes what they have written', async () => {
  const service = await startAsUser()
  await addImage(service)
  const project = await createProject(service)
  const [a, b] = await createPair(service, project)
  await start(service, a, b)
  const shell = await Shell.open(service, a)
  await expect.poll(() => shell.run('ping -c 1 -W 1 10.0.0.2 | tail -2')).toContain('1 packets received')
  // By the kernel of the host, too: nothing of a patch cable needs root.
  await expect.poll(() => service.call('GET', `${a}/adapters/0/ports/0/nio`)).toMatchObject({ path: 'kernel' })
  expect(await shell.run('ping -c 1 -W 1 10.0.0.2 | tail -2')).toContain('1 packets received')
  expect((await shell.run('cat /proc/self/uid_map')).split(/\s+/)[0]).toBe('0')
  const further = await openSocketConsole(service, a, '?name=shell')
  further.socket.send('id -u; grep NoNewPrivs /proc/self/status\r')
  await further.expect('NoNewPrivs:\t1')
  further.socket.close()
  await service.call('POST', `${a}/ready`, { exec: 'ip address show eth0 | grep -q 10.0.0.1' })
  const reason = limiterReason()
  if (reason !== undefined) {
    const limited = await createContainer(service, project, { ram: 64, cpus: 0.5 })
    const refusal = `ram, cpus: this host cannot limit a container: ${reason}; set ram and cpus to 0`
    await expect(start(service, limited)).rejects.toThrow(refusal)
  }
  await shell.run('mkdir -m 700 /root/closed; touch /root/closed/file')
  const layer = join(service.data, 'run/containers/nodes', a.split('/').at(-1) ?? '', 'layer')
  expect((await stat(join(layer, 'upper/root/closed'))).uid).toBe(firstId)
  // What a user of the namespaces cannot read is his own all the same.
  await service.call('DELETE', a)
  expect(await readdir(join(service.data, 'run/containers/nodes'))).not.toContain(a.split('/').at(-1))
  const other = await createContainer(service, project, { files: [{ path: '/etc/motd', text: 'hello' }] })
  await start(service, other)
  expect(await (await Shell.open(service, other)).run('cat /etc/motd; id -u')).toBe('hello0')
})
