import { chmod, copyFile, mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  acceleratorsOf,
  factsOf,
  findEmulators,
  kvmPlatforms,
  resolveEmulator,
  usableEmulators,
} from '../../../../runtime/node/drivers/qemu/binaries.ts'
import { installHint, platformIn } from '../../../../runtime/node/drivers/qemu/platforms.ts'
import { devicesIn, isAtLeast } from '../../../../runtime/node/drivers/qemu/probe.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'
import { qemuName, temporaryDirectory } from './qemu-process.ts'

const needsQemu = requireProgram(qemuName)
const qemuTest = testWith(needsQemu)

test.for([
  ['/usr/bin/qemu-system-x86_64', 'x86_64'],
  ['qemu-kvm', 'x86_64'],
  ['qemu', 'i386'],
  ['qemu-system-mips64el', 'mips64el'],
  ['qemu-system-null', undefined],
  ['qemu-system-pdp11', undefined],
  ['bash', undefined],
] as const)('the platform of %s is %s', ([name, platform]) => {
  expect(platformIn(name)).toBe(platform)
})

test('the package of a platform is named', () => {
  expect(installHint('i386')).toBe('apt-get install qemu-system-x86')
  expect(installHint('aarch64')).toBe('apt-get install qemu-system-arm')
  expect(installHint('ppc64')).toBe('apt-get install qemu-system-ppc')
  expect(installHint('xtensa')).toBe('apt-get install qemu-system-misc')
})

test('versions compare by number', () => {
  expect(isAtLeast({ major: 7, minor: 2 }, 7, 2)).toBe(true)
  expect(isAtLeast({ major: 10, minor: 0 }, 7, 2)).toBe(true)
  expect(isAtLeast({ major: 2, minor: 12 }, 2, 4)).toBe(true)
  expect(isAtLeast({ major: 2, minor: 3 }, 2, 4)).toBe(false)
})

test('device models are read with their heading, bus and alias', () => {
  const devices = devicesIn(
    'Network devices:\nname "e1000", bus PCI, alias "e1000-82540em", desc "Intel"\nname "x"\n\nCPU devices:\nname "y", bus ISA\n',
  )
  expect(devices.get('e1000-82540em')).toEqual({ name: 'e1000', category: 'Network', bus: 'PCI' })
  expect(devices.get('x')).toEqual({ name: 'x', category: 'Network', bus: undefined })
  expect(devices.get('y')?.category).toBe('CPU')
})

qemuTest('the installed emulator says what it can do', async () => {
  const facts = await resolveEmulator({ platform: 'x86_64' }, false)
  expect(facts.platform).toBe('x86_64')
  expect(facts.machines.find(({ alias }) => alias === 'q35')?.maxCpus).toBeGreaterThan(1)
  expect(facts.machines.find(({ isDefault }) => isDefault)?.alias).toBe('pc')
  expect(facts.devices.get('e1000')).toMatchObject({ category: 'Network', bus: 'PCI' })
  expect(facts.devices.get('virtio-net')?.name).toBe('virtio-net-pci')
  expect(facts.netdevs).toContain('socket')
  expect(facts.netdevs.has('dgram')).toBe(isAtLeast(facts.version, 7, 2))
  expect(facts.builtWith.tcg).toBe(true)
})

qemuTest('a file is asked once, and again when it has changed', async () => {
  const directory = await temporaryDirectory()
  const path = join(directory, qemuName)
  const { path: real } = await resolveEmulator({ platform: 'x86_64' }, false)
  await symlink(real, path)
  expect(factsOf(path)).toBe(factsOf(path))
  const before = factsOf(path)
  await before
  const script = join(directory, 'qemu-system-i386')
  await writeFile(script, `#!/bin/sh\nexec ${real} "$@"\n`)
  await chmod(script, 0o755)
  const first = factsOf(script)
  expect((await first).path).toBe(script)
  await utimes(script, 1, 1)
  expect(factsOf(script)).not.toBe(first)
  await factsOf(script)
})

qemuTest('one that gets stuck when it is first asked is asked again', async () => {
  const path = join(await temporaryDirectory(), qemuName)
  const { path: real } = await resolveEmulator({ platform: 'x86_64' }, false)
  const isStuckOnce = `case "$*" in *qmp*) mkdir ${path}.asked && exec sleep 60;; esac`
  await writeFile(path, `#!/bin/sh\n${isStuckOnce}\nexec ${real} "$@"\n`)
  await chmod(path, 0o755)
  expect(await factsOf(path)).toMatchObject({ path, platform: 'x86_64' })
})

qemuTest.for([
  ['the list of its devices', '-device help'],
  ['the list of its networks', '-netdev help'],
  ['the monitor', 'qmp'],
])('one that is killed when it is asked for %s is asked again', async ([, words]) => {
  const path = join(await temporaryDirectory(), qemuName)
  const { path: real } = await resolveEmulator({ platform: 'x86_64' }, false)
  const isKilledOnce = `case "$*" in *"${words}"*) mkdir ${path}.asked && kill -9 $$;; esac`
  await writeFile(path, `#!/bin/sh\n${isKilledOnce}\nexec ${real} "$@"\n`)
  await chmod(path, 0o755)
  const facts = await factsOf(path)
  expect(facts).toEqual({ ...(await factsOf(real)), path })
})

qemuTest('one that is killed within its confinement, which ends with a code then, is asked again', async () => {
  const path = join(await temporaryDirectory(), qemuName)
  const { path: real } = await resolveEmulator({ platform: 'x86_64' }, false)
  const isKilledOnce = `case "$*" in *"-device help"*) mkdir ${path}.asked && exit 137;; esac`
  await writeFile(path, `#!/bin/sh\n${isKilledOnce}\nexec ${real} "$@"\n`)
  await chmod(path, 0o755)
  expect((await factsOf(path)).devices).toEqual((await factsOf(real)).devices)
})

qemuTest('one that is always killed is reported, not kept as one without devices', async () => {
  const path = join(await temporaryDirectory(), qemuName)
  const { path: real } = await resolveEmulator({ platform: 'x86_64' }, false)
  await writeFile(path, `#!/bin/sh\ncase "$*" in *"-device help"*) kill -9 $$;; esac\nexec ${real} "$@"\n`)
  await chmod(path, 0o755)
  await expect(factsOf(path)).rejects.toThrow(/cannot be used as an emulator: it was ended by SIGKILL/)
})

qemuTest('KVM counts only where its device opens and the processor fits', async () => {
  const facts = await resolveEmulator({ platform: 'x86_64' }, false)
  expect(acceleratorsOf(facts, '/nowhere/kvm')).toEqual(['tcg'])
  expect(acceleratorsOf({ ...facts, platform: 'm68k' })).toEqual(['tcg'])
  if (process.arch === 'x64') expect(acceleratorsOf(facts, '/dev/null')).toEqual(['kvm', 'tcg'])
  expect(kvmPlatforms('/nowhere/kvm')).toEqual([])
})

qemuTest('a program that two directories of PATH lead to is listed once', async () => {
  const directory = await temporaryDirectory()
  const [one, two] = [join(directory, 'one'), join(directory, 'two')]
  await mkdir(one)
  await symlink(one, two)
  await copyFile('/bin/true', join(one, 'qemu-system-arm'))
  await copyFile('/bin/true', join(one, 'qemu-system-arm-spice'))
  await copyFile('/bin/true', join(one, 'bash'))
  await writeFile(join(one, 'qemu-system-data'), 'not executable')
  expect(findEmulators(`${one}:${two}:relative:`)).toEqual([join(one, 'qemu-system-arm')])
})

qemuTest('the usable ones are filtered by platform', async () => {
  expect((await usableEmulators(['x86_64'])).map(({ path }) => path)).toContainEqual(expect.stringMatching(qemuName))
  expect(await usableEmulators(['pdp11'])).toEqual([])
})

qemuTest('a path that cannot be used falls back to the platform, when one is given', async () => {
  const facts = await resolveEmulator({ qemu_path: '/opt/gone/qemu-system-x86_64', platform: 'x86_64' }, true)
  expect(facts.path).toMatch(qemuName)
})

test.for([
  [{ qemu_path: 'qemu-system-pdp11' }, true, 'qemu-system-pdp11 does not exist or cannot be run; install it (apt-get'],
  [{ qemu_path: '/bin/sh' }, true, 'sh is not the name of an emulator'],
  [{ platform: 'xtensa' }, true, 'qemu-system-xtensa is not installed; install it (apt-get install qemu-system-misc)'],
  [{}, true, 'platform: missing, expected what the machine emulates'],
] as const)('%j is refused', async ([wanted, isLocal, message]) => {
  await expect(resolveEmulator(wanted, isLocal)).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining(message),
  })
})

test('outside local mode only programs in PATH are run, and a program that is not an emulator is reported with its output', async () => {
  const path = join(await temporaryDirectory(), 'qemu-system-x86_64')
  await writeFile(path, '#!/bin/sh\necho "it is broken" >&2\nexit 3\n')
  await chmod(path, 0o755)
  await expect(resolveEmulator({ qemu_path: path }, false)).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('is not in PATH'),
  })
  await expect(resolveEmulator({ qemu_path: path }, true)).rejects.toMatchObject({
    status: 409,
    message: 'qemu-system-x86_64 cannot be used as an emulator: it is broken',
  })
})
