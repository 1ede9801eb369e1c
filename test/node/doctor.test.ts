import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { dynamipsDriver } from '../../runtime/node/drivers/dynamips/index.ts'
import { emulatorChecks, kvmRightFix } from '../../runtime/node/drivers/qemu/doctor.ts'
import { consoleAccess, sshAccess } from '../../runtime/node/service/doctor/doctor.ts'
import { freshDirectory } from '../support/directory.ts'
import { requireProgram } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

const qemu = requireProgram('qemu-system-x86_64')

function withPath(path: string): void {
  vi.stubEnv('PATH', path)
  onTestFinished(() => void vi.unstubAllEnvs())
}

test('without an emulator the doctor says how one is installed', async () => {
  withPath(await freshDirectory())
  expect(await emulatorChecks()).toEqual([
    {
      name: 'QEMU',
      status: 'warning',
      found: 'not found; for machine-emulator nodes',
      fix: 'sudo apt-get install qemu-system-x86',
      prevents: ['machine-emulator'],
    },
  ])
})

test('the doctor says who can use consoles without a password', () => {
  const check = (console_host: string) => consoleAccess({ console_host })
  expect(check('127.0.0.1')).toMatchObject({ status: 'ok', found: expect.stringContaining('every user of this host') })
  for (const reachable of ['0.0.0.0', '::', '192.0.2.1'])
    expect(check(reachable)).toMatchObject({
      status: 'warning',
      found: expect.stringContaining('everyone who reaches that address'),
      fix: expect.stringContaining('console_host'),
    })
})

test('dynamips is searched for at the path of the settings', async () => {
  const check = async (path: string) => (await dynamipsDriver.doctor?.({ path }))?.[0]
  expect(await check('no-such-dynamips')).toEqual({
    name: 'dynamips',
    status: 'warning',
    found: 'not found; for Cisco routers of the 1700 to 7200 series',
    fix: 'sudo apt-get install dynamips (Debian: component non-free)',
    prevents: ['dynamips'],
  })
  const found = await check(process.execPath)
  expect(found).toMatchObject({ status: 'ok', found: expect.stringContaining(process.execPath) })
  expect(found).not.toHaveProperty('prevents')
})

test('an emulator that does not run is a separate finding', async () => {
  const directory = await freshDirectory()
  const broken = join(directory, 'qemu-system-mips')
  await writeFile(broken, '#!/bin/sh\necho "cannot open shared object file" >&2\nexit 127\n')
  await chmod(broken, 0o755)
  withPath(directory)
  const [check] = await emulatorChecks()
  expect(check).toMatchObject({
    name: 'qemu-system-mips',
    status: 'warning',
    found: expect.stringContaining('cannot open shared object file'),
    fix: 'reinstall the package of qemu-system-mips',
  })
})

test('an emulator that only lacks the right to KVM need not be installed again', async () => {
  const directory = await freshDirectory()
  const microvm = join(directory, 'qemu-system-x86_64-microvm')
  const says = 'Could not access KVM kernel module: Permission denied\\n$0: failed to initialize kvm: Permission denied'
  await writeFile(microvm, `#!/bin/sh\nprintf "${says}\\n" >&2\nexit 1\n`)
  await chmod(microvm, 0o755)
  withPath(directory)
  const [check] = await emulatorChecks()
  expect(check).toMatchObject({
    status: 'warning',
    found: expect.stringContaining('failed to initialize kvm'),
    fix: expect.stringMatching(/^it runs with KVM only: /),
  })
})

test('the fix for KVM names the group of the device, when that group has access', () => {
  const groups = 'root:x:0:\nkvm:x:106:libvirt-qemu\n'
  expect(kvmRightFix(0o20660, 106, groups)).toBe('sudo usermod -aG kvm "$USER", then log in again')
  expect(kvmRightFix(0o20660, 993, groups)).toBe('sudo usermod -aG 993 "$USER", then log in again')
  for (const [mode, gid] of [
    [0o20600, 106],
    [0o20600, 0],
    [0o20660, 0],
  ] as const)
    expect(kvmRightFix(mode, gid, groups)).toMatch(/^sudo chgrp kvm \/dev\/kvm && sudo chmod 660 .*usermod -aG kvm/)
})

testWith(qemu)('an emulator that runs is shown with its version, its screens and a UEFI for it', async () => {
  const checks = await emulatorChecks()
  expect(checks.find(({ name }) => name === 'qemu-system-x86_64')).toMatchObject({
    status: 'ok',
    found: expect.stringMatching(/^\d+\.\d+\.\d+, \/.*qemu-system-x86_64, VNC/),
  })
  expect(checks.find(({ name }) => name === 'UEFI')).toMatchObject({
    status: 'ok',
    found: expect.stringContaining('/'),
  })
})

test('the doctor says whether consoles are open by SSH', () => {
  const off = { status: 'ok', found: expect.stringContaining('off; with ssh.port') }
  expect(sshAccess({ ssh: { host: '127.0.0.1' } })).toMatchObject(off)
  expect(sshAccess({ ssh: { host: '127.0.0.1', port: 3022 } }).found).toContain('ssh -p 3022 LAB/NODE@127.0.0.1')
})
