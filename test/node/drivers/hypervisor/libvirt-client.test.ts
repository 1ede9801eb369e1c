import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { libvirtCheck } from '../../../../runtime/node/drivers/hypervisor/doctor.ts'
import { addressOf } from '../../../../runtime/node/drivers/hypervisor/libvirt/address.ts'
import { type ClientOptions, LibvirtClient } from '../../../../runtime/node/drivers/hypervisor/libvirt/client.ts'
import { writeDomain } from '../../../../runtime/node/drivers/hypervisor/libvirt/domain.ts'
import { procedures } from '../../../../runtime/node/drivers/hypervisor/libvirt/protocol.ts'
import { XdrWriter } from '../../../../runtime/node/drivers/hypervisor/libvirt/xdr.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { FakeLibvirt } from './fake-libvirt.ts'

const uuid = '6e2b5c1a-1111-4222-8333-444455556666'
const { connectGetLibVersion, connectListAllDomains } = procedures
const version = { [connectGetLibVersion]: () => new XdrWriter().uint(0).uint(9_001_002) }
const oneVm = { [connectListAllDomains]: () => writeDomain(new XdrWriter().uint(1), { name: 'one', uuid }).uint(1) }

function clientOf(options: ClientOptions): LibvirtClient {
  const client = new LibvirtClient({ retryMs: [5, 20], ...options })
  onTestFinished(() => client.close())
  return client
}

const ask = (client: LibvirtClient) => client.call(connectGetLibVersion, undefined, 5000)

/** As another user, with these variables. */
function asUser(env: Readonly<Record<string, string>>): void {
  vi.spyOn(process, 'getuid').mockReturnValue(1000)
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  onTestFinished(() => {
    vi.restoreAllMocks()
    vi.unstubAllEnvs()
  })
}

test('a lost connection is opened again for the next call, and for watchers', async () => {
  const libvirt = await FakeLibvirt.start({ ...version, ...oneVm })
  const client = clientOf({ uri: () => libvirt.uri })
  await ask(client)
  libvirt.drop()
  await expect.poll(() => ask(client).then(() => true)).toBe(true)
  const heard: string[] = []
  const unwatch = client.watch((it) => heard.push(it))
  await libvirt.end()
  await expect.poll(() => ask(client).catch((error: Error) => error.message)).toContain('No libvirt answers')
  heard.length = 0
  await libvirt.listen()
  await expect.poll(() => heard).toEqual([uuid])
  unwatch()
})

test('a watcher alone makes no calls to libvirt', async () => {
  const libvirt = await FakeLibvirt.start(version)
  const client = clientOf({ uri: () => libvirt.uri })
  client.watch(() => {})
  const other = clientOf({ uri: () => libvirt.uri })
  await ask(other)
  expect(libvirt.calls.filter(({ procedure }) => procedure === procedures.authList)).toHaveLength(1)
})

test('another URI takes effect at once', async () => {
  const [one, two] = [await FakeLibvirt.start(version), await FakeLibvirt.start(version)]
  let { uri } = one
  const client = clientOf({ uri: () => uri })
  await ask(client)
  uri = two.uri
  await ask(client)
  expect(two.calls.at(-1)?.procedure).toBe(connectGetLibVersion)
})

test.for([
  ['qemu:///system', 'qemu:///system', '/run/libvirt/virtqemud-sock'],
  ['qemu+unix:///system', 'qemu:///system', '/run/libvirt/virtqemud-sock'],
  ['qemu:///session', 'qemu:///session', '/run/user/1000/libvirt/virtqemud-sock'],
  ['qemu:///system?socket=/x/y', 'qemu:///system', '/x/y'],
] as const)('%s is %s at %s', ([text, uri, socket]) => {
  asUser({ XDG_RUNTIME_DIR: '/run/user/1000' })
  const address = addressOf(text)
  expect(address).toMatchObject({ uri, isSession: uri.endsWith('session') && !text.includes('?') })
  expect(address.sockets[0]).toBe(socket)
})

test.for([
  ['qemu+ssh://host/system', 'points to another machine'],
  ['qemu://host/system', 'points to another machine'],
  ['qemu+tls:///system', 'points to another machine'],
  ['xen:///system', 'is not a QEMU URI'],
  ['lxc:///', 'is not a QEMU URI'],
  ['system', 'is not a QEMU URI'],
  ['qemu:///other', 'must be qemu:///system or qemu:///session'],
] as const)('%s is refused: it %s', ([text, message]) => {
  expect(() => addressOf(text)).toThrow(message)
})

test('root has no session', () => {
  vi.spyOn(process, 'getuid').mockReturnValue(0)
  onTestFinished(() => void vi.restoreAllMocks())
  expect(() => addressOf('qemu:///session')).toThrow('set hypervisor.libvirt_uri to qemu:///system')
})

/** A PATH with a daemon of a session that is no daemon. */
async function withDaemon(script: string): Promise<string> {
  const directory = await freshDirectory()
  await writeFile(join(directory, 'virtqemud'), `#!/bin/sh\n${script}\n`)
  await chmod(join(directory, 'virtqemud'), 0o755)
  await mkdir(join(directory, 'libvirt'))
  asUser({ XDG_RUNTIME_DIR: directory, PATH: `${directory}:${process.env.PATH}` })
  return directory
}

test('the daemon of a session is started when it is needed', async () => {
  const libvirt = await FakeLibvirt.start(version)
  const directory = await withDaemon(
    `[ "$*" = "--timeout=120 -d" ] && ln -s ${libvirt.path} "$XDG_RUNTIME_DIR/libvirt/virtqemud-sock"`,
  )
  const check = { name: 'libvirt', status: 'ok', fix: null }
  const found = `${directory}/virtqemud, which is started when qemu:///session is needed`
  expect(await libvirtCheck('qemu:///session')).toEqual({ ...check, found })
  await ask(clientOf({ uri: () => 'qemu:///session' }))
  expect(await libvirtCheck('qemu:///session')).toEqual({ ...check, found: '9.1.2, qemu:///session' })
})

test('one that cannot be started says why', async () => {
  await withDaemon('echo "no such driver" >&2; exit 3')
  await expect(ask(clientOf({ uri: () => 'qemu:///session' }))).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('could not be started: no such driver'),
  })
})

test('the doctor says what is missing, and how to fix it', async () => {
  const uri = `qemu:///system?socket=${await freshDirectory()}/none`
  expect(await libvirtCheck('qemu+ssh://there/system')).toMatchObject({ status: 'warning' })
  await withDaemon('exit 1')
  expect(await libvirtCheck(uri)).toMatchObject({
    status: 'warning',
    found: expect.stringContaining('virtqemud is there, but does not answer at'),
    fix: 'sudo systemctl enable --now virtqemud.socket',
  })
  const locked = await FakeLibvirt.start({ [procedures.authList]: () => new XdrWriter().uint(1).int(1) })
  expect(await libvirtCheck(locked.uri)).toEqual({
    name: 'libvirt',
    status: 'warning',
    found: 'libvirt requires a user and a password (SASL), which Patchbay does not support; for hypervisor nodes',
    fix: 'allow the group of its socket (auth_unix_rw = "none")',
  })
})
