import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { seccompOf } from '../../../../runtime/node/drivers/container/seccomp.ts'

const profile = {
  defaultAction: 'SCMP_ACT_ERRNO',
  defaultErrnoRet: 38,
  archMap: [
    { architecture: 'SCMP_ARCH_X86_64', subArchitectures: ['SCMP_ARCH_X86'] },
    { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: ['SCMP_ARCH_ARM'] },
  ],
  syscalls: [
    { names: ['read'], action: 'SCMP_ACT_ALLOW', args: [], includes: {}, excludes: {} },
    { names: ['mount'], action: 'SCMP_ACT_ALLOW', args: [], includes: { caps: ['CAP_SYS_ADMIN'] }, excludes: {} },
    { names: ['mount'], action: 'SCMP_ACT_ERRNO', errnoRet: 1, includes: {}, excludes: { caps: ['CAP_SYS_ADMIN'] } },
    { names: ['s390_pci'], action: 'SCMP_ACT_ALLOW', includes: { arches: ['s390x'] } },
  ],
}

test('the rules of the profile that fit the capabilities and the processor apply', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'seccomp.json')
  await writeFile(file, JSON.stringify(profile))
  const rules = (capabilities: string[]) => seccompOf(capabilities, file)
  const refused = { names: expect.arrayContaining(['keyctl', 'bpf']), action: 'SCMP_ACT_ERRNO', errnoRet: 1 }
  expect(rules([]).syscalls).toEqual([
    refused,
    { names: ['read'], action: 'SCMP_ACT_ALLOW' },
    { names: ['mount'], action: 'SCMP_ACT_ERRNO', errnoRet: 1 },
  ])
  expect(rules(['CAP_SYS_ADMIN']).syscalls).toEqual([
    refused,
    { names: ['read'], action: 'SCMP_ACT_ALLOW' },
    { names: ['mount'], action: 'SCMP_ACT_ALLOW' },
  ])
  expect(rules([])).toMatchObject({ defaultAction: 'SCMP_ACT_ERRNO', defaultErrnoRet: 38 })
})

test('without the profile no container runs, and the package that has it is named', () => {
  expect(() => seccompOf([], '/absent')).toThrow('sudo apt-get install golang-github-containers-common')
})
