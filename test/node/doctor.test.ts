import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { dynamipsOfHost } from '../../runtime/node/kinds/dynamips/index.ts'
import { emulatorChecks } from '../../runtime/node/kinds/machine-emulator/doctor.ts'
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
    },
  ])
})

test('dynamips is looked for where the settings say', async () => {
  const check = async (path: string) => (await dynamipsOfHost.doctor?.({ path }))?.[0]
  expect(await check('no-such-dynamips')).toEqual({
    name: 'dynamips',
    status: 'warning',
    found: 'not found; for Cisco routers of the 1700 to 7200 series',
    fix: 'sudo apt-get install dynamips (Debian: component non-free)',
  })
  expect(await check(process.execPath)).toMatchObject({
    status: 'ok',
    found: expect.stringContaining(process.execPath),
  })
})

test('an emulator that does not run is a finding of its own', async () => {
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
