import { expect, test } from 'vitest'
import { bundleOf, type ImageRun } from '../../../../runtime/node/drivers/container/bundle.ts'
import { ContainerProperties } from '../../../../runtime/node/drivers/container/properties.ts'
import { parseOrDefault } from '../../../../runtime/node/engine/nodes/record.ts'

const image: ImageRun = {
  entrypoint: ['/entry'],
  args: ['--of-image'],
  env: ['PATH=/image', 'COLOUR=red'],
  cwd: '/srv',
  user: { uid: 0, gid: 0, additionalGids: [] },
}

/** The configuration of a container with these settings. */
function configOf(settings: Partial<ContainerProperties>, run: ImageRun = image) {
  const properties = parseOrDefault(ContainerProperties, settings)
  const bundle = bundleOf({ name: 'Web server 1', properties }, run, () => ({ profile: 'of podman' }))
  return { ...bundle, config: JSON.parse(bundle.config) }
}

test.each([
  ['those of the image', {}, ['/entry', '--of-image']],
  ['a command', { command: 'serve "two words"' }, ['/entry', 'serve', 'two words']],
  ['an entrypoint, which does not get the arguments of the image', { entrypoint: '/other -x' }, ['/other', '-x']],
  ['both', { entrypoint: '/other', command: 'run' }, ['/other', 'run']],
])('runs %s', (_, settings, args) => {
  expect(configOf(settings).config.process.args).toEqual(args)
})

test('variables of the node take the place of those of the image', () => {
  const { env } = configOf({ environment: 'COLOUR=blue=green\n\nX=\n' }).config.process
  expect(env).toEqual(['PATH=/image', 'TERM=xterm', 'HOSTNAME=Web-server-1', 'COLOUR=blue=green', 'X='])
})

test('root has the capabilities of every container and those that were asked for, another user has none', () => {
  const { capabilities } = configOf({ capabilities: ['SYS_ADMIN'] }).config.process
  expect(capabilities.effective).toEqual(expect.arrayContaining(['CAP_NET_ADMIN', 'CAP_SYS_ADMIN']))
  expect(capabilities.effective).not.toContain('CAP_SYS_MODULE')
  const user = { uid: 1000, gid: 1000, additionalGids: [] }
  expect(Object.keys(configOf({}, { ...image, user }).config.process.capabilities)).toEqual(['bounding'])
})

test('the user, the directory and the size of /dev/shm of the node take the place of those of the image', () => {
  const { process, mounts } = configOf({ user: '1000:5', workdir: '/work', shm: 128 }).config
  expect(process).toMatchObject({ user: { uid: 1000, gid: 5, additionalGids: [] }, cwd: '/work' })
  expect(Object.keys(process.capabilities)).toEqual(['bounding'])
  expect(mounts.find((it: { destination: string }) => it.destination === '/dev/shm').options).toContain('size=128m')
  expect(configOf({ user: '7' }).config.process.user).toEqual({ uid: 7, gid: 0, additionalGids: [] })
  expect(configOf({}).config.process).toMatchObject({ user: image.user, cwd: '/srv' })
})

test('files are copied under the sum of their content, and one of the node takes the place of ours', () => {
  const files = [
    { path: '/etc/hosts', text: '10.0.0.1 gw\n' },
    { path: '/etc/frr/frr.conf', text: '!\n', mode: '0640' },
  ]
  const { contents, files: copied, config } = configOf({ files })
  expect([...contents.values()]).toEqual(['Web-server-1\n', '10.0.0.1 gw\n', '!\n'])
  expect(copied.map(({ mode }) => mode)).toEqual(['0644', '0644', '0640'])
  const binds = config.mounts.filter(({ type }: { type: string }) => type === 'bind')
  expect(binds.map(({ destination }: { destination: string }) => destination)).toEqual([
    ...['/etc/hostname', '/etc/hosts', '/etc/frr/frr.conf'],
  ])
  const other = configOf({ files: [{ path: '/etc/hosts', text: 'changed' }] })
  expect(other.files[1]?.to).not.toBe(copied[1]?.to)
})

test('files with the same content are files of their own', () => {
  const files = ['/one', '/other'].map((path) => ({ path, text: 'same' }))
  const copies = configOf({ files }).files.map(({ to }) => to)
  expect(new Set(copies).size).toBe(copies.length)
})

test('no namespace of the holder is left, and the profile of system calls is on', () => {
  const { linux, process } = configOf({}).config
  expect(linux.namespaces.map(({ type }: { type: string }) => type)).toEqual(['pid', 'ipc', 'uts', 'mount'])
  expect(linux.seccomp).toEqual({ profile: 'of podman' })
  expect(process.noNewPrivileges).toBe(true)
})
