import { execFileSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kvmCheck } from '../../../../runtime/node/drivers/qemu/doctor.ts'
import { kvmState, tryKvm } from '../../../../runtime/node/drivers/qemu/kvm-guest.ts'
import { findProgram } from '../../../../runtime/node/os/system/find-program.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { requireProgram } from '../../../support/require.ts'
import { provided, testWith } from '../../../support/test-with.ts'
import { sharedAgent } from './machine-agent.ts'

const needsQemu = requireProgram('qemu-system-x86_64')
const x64 = provided(process.arch === 'x64', 'this host is no x86-64')
const real = findProgram('qemu-system-x86_64') ?? ''

/** An emulator of which the guest under KVM does something else. */
async function emulator(underKvm: string): Promise<string> {
  const path = join(await freshDirectory(), 'qemu-system-x86_64')
  await writeFile(path, `#!/bin/sh\n[ "$2" = kvm ] && { ${underKvm}; }\nexec '${real}' "$@"\n`)
  await chmod(path, 0o755)
  return path
}

testWith(needsQemu, x64)('KVM works when a guest boots under it, and not when the device opens', async () => {
  expect(await tryKvm(undefined)).toBe('unknown')
  expect(await tryKvm(await emulator('exit 85'))).toBe('runs')
  expect(await tryKvm(await emulator('exit 1'))).toBe('fails')
  const hanging = await emulator('echo $$ >"$0.pid"; exec sleep 60')
  expect(await tryKvm(hanging)).toBe('hangs')
  const pid = Number(await readFile(`${hanging}.pid`, 'utf8'))
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})

test('the doctor says that guests hang under KVM, and what to do', () => {
  expect(kvmCheck('runs')).toMatchObject({ status: 'ok', found: expect.stringContaining('boots') })
  for (const verdict of ['hangs', 'fails'] as const) {
    expect(kvmCheck(verdict)).toMatchObject({ status: 'warning', fix: expect.stringContaining('nested') })
  }
  expect(kvmCheck('unknown')).toMatchObject({ status: 'ok' })
})

/** How long a guest takes to boot under KVM here, ms; infinite when it does not within 6 s. */
function bootTime(): number | undefined {
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK)
  } catch {
    return undefined
  }
  const args = [
    '-accel',
    'kvm',
    '-machine',
    'pc',
    '-m',
    '16',
    '-nodefaults',
    '-display',
    'none',
    '-boot',
    'reboot-timeout=1',
  ]
  // Without a disk firmware that runs restarts the machine.
  const child = `timeout -s KILL 6 '${real}' ${args.join(' ')} -no-reboot -net none`
  const start = performance.now()
  const code = execFileSync('sh', ['-c', `${child} >/dev/null 2>&1; echo $?`], { encoding: 'utf8' }).trim()
  return code === '0' ? performance.now() - start : Number.POSITIVE_INFINITY
}

const took = needsQemu.skip || x64.skip ? undefined : bootTime()

testWith(
  needsQemu,
  x64,
  provided(took !== undefined, '/dev/kvm cannot be opened'),
)('the state of KVM is that of this host', async () => {
  const state = await kvmState()
  expect(['runs', 'hangs']).toContain(state)
  // A host between both has guests that are slower than without KVM: they boot, and take more than a second for that.
  if (state === 'runs') expect(took).toBeLessThan(6000)
  else expect(took).toBeGreaterThan(1000)
})

const lab = sharedAgent()

test('a compute whose configuration forbids KVM has no label of it, and boots no guest to find out', async () => {
  const { agent } = await lab()
  const { labels } = await agent.host.capabilities()
  expect(labels).not.toContain('kvm')
})
