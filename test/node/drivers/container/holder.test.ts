import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { holderCommand } from '../../../../runtime/node/drivers/container/holder.ts'
import { runProgram } from '../../../../runtime/node/os/programs/start.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

testWith(requireProgram('perl'))('a holder enters its control groups, whatever their names', async () => {
  const directory = await freshDirectory()
  const groups = ['memory', 'cpu,cpuacct'].map((name) => join(directory, name, 'cgroup.procs'))
  for (const group of groups) await mkdir(dirname(group))
  const { command, args } = holderCommand({
    ids: { by: 'root', firstUid: 100_000, firstGid: 100_000, count: 65_536 },
    limits: { prefix: [], groups },
    ...{ crun: '/no/crun', tun: '/no/tun', processes: 0, isNesting: false, address: undefined },
    ...{ places: [], signals: [], taps: [], files: [], sysctls: [], exec: [] },
  })
  await runProgram(command, args, { ms: 10_000 })
  // 0 stands for the process that writes it (cgroups(7)).
  expect(await Promise.all(groups.map((group) => readFile(group, 'utf8')))).toEqual(['0', '0'])
})
