import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { compared, figuresOf } from '../bench/against.ts'
import { Bed } from '../bench/packets/bed.ts'
import { Program } from '../bench/packets/program.ts'
import { buildOf } from '../bench/revision.ts'
import { measure } from '../bench/service.ts'
import { freshDirectory } from '../support/directory.ts'

const bench = join(import.meta.dirname, '../bench/main.ts')

test('a bench that is killed leaves no service, keeper or emulator running', async () => {
  const directory = await freshDirectory()
  const child = spawn(process.execPath, [bench, 'pcs-500', '--build', inject('bundled')], {
    env: { ...process.env, TMPDIR: directory },
    stdio: 'ignore',
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ours = () => processesNaming(directory)
  // The process of the pcs, which names no directory, runs as soon as its keeper has a child.
  await expect.poll(async () => (await ours()).filter(({ hasChildren }) => hasChildren).length).toBeGreaterThan(0)
  const before = (await ours()).flatMap(({ pid, children }) => [pid, ...children])
  child.kill('SIGKILL')
  await once(child, 'exit')
  await expect.poll(ours).toEqual([])
  const alive = async () => (await processes()).filter(({ pid, state }) => before.includes(pid) && state !== 'Z')
  await expect.poll(alive).toEqual([])
  await expect.poll(() => readdir(directory)).toEqual([])
})

test('the figures of a row are those of this build only: no difference, no target, no figures of other emulators', () => {
  const figures = figuresOf([
    'machine start',
    '+12 ms p50',
    'p50 45 ms, p90 60 ms; directly p50 33 ms, meets the target of 80 ms',
  ])
  expect([...figures]).toEqual([
    ['machine start: p50', { unit: 'ms', value: 45 }],
    ['machine start: p90', { unit: 'ms', value: 60 }],
  ])
  expect([...figuresOf(['GET', '1200 req/s', 'p50 0.61 ms']).keys()]).toEqual(['GET', 'GET: p50'])
  expect(figuresOf(['GET', '1200 req/s', 'p50 73 us']).get('GET: p50')).toEqual({ unit: 'ms', value: 0.073 })
  const ofFrames = figuresOf(['node to node', '160 kpps', 'CPU 1600 ns a frame'])
  expect(ofFrames.get('node to node: CPU')).toEqual({ unit: 'ns', value: 1600 })
})

test.for([
  ['ms', [10, 11, 10], [10, 10, 10], false],
  ['ms', [12, 13, 12], [10, 10, 10], true],
  ['ms', [12, 13, 12], [10, 15, 9], false],
  ['req/s', [80, 80, 80], [100, 100, 101], true],
  ['req/s', [120, 120, 120], [100, 100, 101], false],
] as const)('%s %j beside %j is worse: %s', ([unit, ours, theirs, isWorse]) => {
  expect(compared('row', { unit, values: [...ours] }, { unit, values: [...theirs] }).isWorse).toBe(isWorse)
})

test('the packet benchmark has ports of its own for both ends of every link', async () => {
  const bed = await Bed.open({ kind: 'fast', shape: 'joined' }, { links: 20 })
  onTestFinished(() => bed.close())
  expect((await bed.throughput(512)).kpps).toBeGreaterThan(0)
})

test('the packet path of another build is measured by the ports of its keeper', async () => {
  await using program = new Program()
  measure(inject('bundled'))
  for (const shape of ['leg', 'switched'] as const) {
    const bed = await Bed.open({ kind: 'program', program, shape })
    onTestFinished(() => bed.close())
    const header = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]
    expect((await bed.throughput(512, { header })).kpps).toBeGreaterThan(0)
  }
})

test('a keeper is alone while its packet path is measured, and ends with its part', async () => {
  const directory = await freshDirectory()
  vi.stubEnv('TMPDIR', directory)
  onTestFinished(() => void vi.unstubAllEnvs())
  await using program = new Program()
  measure(inject('bundled'))
  const bed = await Bed.open({ kind: 'program', program, shape: 'joined' })
  expect((await processesNaming(directory)).length, 'only the keeper names the directory').toBe(1)
  const { cpu, memory } = await bed.usage()
  expect(Math.min(cpu, memory)).toBeGreaterThan(0)
  await bed.close()
  await expect.poll(() => processesNaming(directory)).toEqual([])
})

test('a comparison names what is neither a build nor a revision', () => {
  expect(buildOf(inject('bundled'))).toBe(inject('bundled'))
  expect(() => buildOf('no-such-revision')).toThrow('no-such-revision is neither a directory with a build')
})

interface Process {
  readonly pid: number
  readonly parent: number
  readonly state: string
  readonly command: string
}

async function processesNaming(directory: string) {
  const all = await processes()
  return all
    .filter(({ command, state }) => command.includes(directory) && state !== 'Z' && !command.startsWith('/bin/sh'))
    .map(({ pid }) => {
      const children = all.filter(({ parent }) => parent === pid).map((it) => it.pid)
      return { pid, children, hasChildren: children.length > 0 }
    })
}

async function processes(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  return Promise.all(
    pids.map(async (pid) => {
      const [command = '', stat = ''] = await Promise.all(
        ['cmdline', 'stat'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      )
      const [, state = '', parent] = /\) (\S) (\d+)/.exec(stat) ?? []
      return { pid: Number(pid), parent: Number(parent), state, command }
    }),
  )
}
