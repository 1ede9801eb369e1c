import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ControlGroups, findLimiter } from '../../../../runtime/node/drivers/container/control-groups.ts'

interface Host {
  readonly uid: number
  readonly mounts: readonly string[]
  readonly cgroup?: string
  /** Contents of `cgroup.controllers`, by groups below the first mount of version 2. */
  readonly controllers?: Readonly<Record<string, string>>
  readonly hasSystemd?: boolean
}

/** What a host with these files limits containers with; `{top}` is where its control groups are. */
async function limiterOf({ uid, mounts, cgroup = '0::/', controllers = {}, hasSystemd = false }: Host) {
  const top = await mkdtemp(join(tmpdir(), 'patchbay-groups-'))
  onTestFinished(() => rm(top, { recursive: true }))
  await writeFile(join(top, 'mountinfo'), mounts.join('\n').replaceAll('{top}', top))
  await writeFile(join(top, 'cgroup'), cgroup)
  for (const [group, names] of Object.entries(controllers)) {
    await mkdir(join(top, group), { recursive: true })
    await writeFile(join(top, group, 'cgroup.controllers'), `${names}\n`)
  }
  return { top, found: findLimiter({ uid, proc: top, systemd: join(top, hasSystemd ? 'cgroup' : 'absent') }) }
}

const v1 = (...options: readonly string[]) =>
  options.map((it, index) => `3${index} 22 0:2${index} / {top}/${it} rw - cgroup cgroup rw,${it}`)
const v2 = ['30 22 0:27 / {top} rw,relatime - cgroup2 cgroup2 rw']

test('root uses groups of version 1 where memory and processors are there, below its own ones', async () => {
  const both = { uid: 0, mounts: [...v1('memory', 'cpu,cpuacct'), ...v2] }
  const { top, found } = await limiterOf({ ...both, cgroup: '4:memory:/box\n1:cpu,cpuacct:/\n0::/' })
  expect(found).toEqual({ by: 'root', version: 1, memory: `${top}/memory/box`, cpu: `${top}/cpu,cpuacct` })
})

test('root uses groups of version 2 where no systemd runs', async () => {
  const { top, found } = await limiterOf({ uid: 0, mounts: v2, controllers: { '.': 'cpuset cpu io memory pids' } })
  expect(found).toEqual({ by: 'root', version: 2, memory: top, cpu: top })
})

test.for<{ name: string; host: Host; reason: string }>([
  {
    name: 'a user with groups of version 1',
    host: { uid: 1000, mounts: v1('memory', 'cpu') },
    reason: 'only root uses',
  },
  { name: 'a host without groups', host: { uid: 0, mounts: [] }, reason: 'no control groups' },
  { name: 'a user without systemd', host: { uid: 1000, mounts: v2 }, reason: 'only root makes' },
  {
    name: 'root with controllers elsewhere',
    host: { uid: 0, mounts: v2, controllers: { '.': 'pids' } },
    reason: 'no controller of memory and cpu',
  },
])('$name gets the reason, and no limit is ignored', async ({ host, reason }) => {
  const { found } = await limiterOf(host)
  expect(found).toEqual({ reason: expect.stringContaining(reason) })
  const groups = new ControlGroups('/run', () => found)
  await expect(groups.limit('a', { ram: 64, cpus: 0 })).rejects.toThrow(reason)
  await expect(groups.limit('a', { ram: 0, cpus: 0.5 })).rejects.toThrow('cpus: this host cannot limit')
  expect(await groups.limit('a', { ram: 0, cpus: 0 })).toEqual({ prefix: [], groups: [] })
})

test('a user with systemd gets a scope of it', async () => {
  const limiter = { by: 'systemd', systemdRun: '/usr/bin/systemd-run', uid: 1000 } as const
  const { prefix } = await new ControlGroups('/run', () => limiter).limit('a', { ram: 512, cpus: 1.5 })
  expect(prefix.join(' ')).toContain('--user --scope --quiet --collect --property MemoryMax=512M')
  expect(prefix.join(' ')).toContain('CPUQuota=150% --')
})
