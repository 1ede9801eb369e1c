import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ChildRecords, reapLeftovers } from '../../../../runtime/node/keeper/process/child-records.ts'
import { identify, isSame } from '../../../../runtime/node/os/system/process-identity.ts'
import { freshDirectory } from '../../../support/directory.ts'

/** A process group of its own, ended with the test. Resolves when the script has said it is there. */
async function startGroup(script: string, cwd = '/'): Promise<ChildProcess & { pid: number }> {
  const child = spawn('/bin/sh', ['-c', `${script} echo there; read line`], {
    cwd,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  await once(child.stdout, 'data')
  const { pid } = child
  if (pid === undefined) throw new Error('not started')
  onTestFinished(() => {
    if (isRunning(child)) process.kill(-pid, 'SIGKILL')
  })
  return Object.assign(child, { pid })
}

const isRunning = (child: ChildProcess) => child.exitCode === null && child.signalCode === null

async function change(directory: string, pid: number, changes: object): Promise<void> {
  const children = join(directory, 'children')
  for (const name of await readdir(children)) {
    const record = JSON.parse(await readFile(join(children, name), 'utf8')) as { pid: number }
    if (record.pid === pid) await writeFile(join(children, name), JSON.stringify({ ...record, ...changes }))
  }
}

test('exactly the recorded processes are ended: one with another start time or boot is a different process', async () => {
  const directory = await freshDirectory()
  const [left, laterPid, otherBoot, unrecorded] = await Promise.all(
    ['', '', '', ''].map((script) => startGroup(script)),
  )
  if (!left || !laterPid || !otherBoot || !unrecorded) throw new Error('not started')
  const records = new ChildRecords(directory)
  records.add('pc:left', left.pid)
  records.add('pc:later', laterPid.pid)
  records.add('pc:boot', otherBoot.pid)
  await change(directory, laterPid.pid, { start_time: (identify(laterPid.pid)?.start_time ?? 0) - 1 })
  await change(directory, otherBoot.pid, { boot_id: '00000000-0000-4000-8000-000000000000' })
  const end = once(left, 'exit')
  expect(await reapLeftovers(directory)).toEqual(['pc:left'])
  expect(await end).toEqual([null, 'SIGTERM'])
  expect([laterPid, otherBoot, unrecorded].map(isRunning)).toEqual([true, true, true])
  expect(await readdir(join(directory, 'children'))).toEqual([])
  expect(await reapLeftovers(directory)).toEqual([])
})

test('an orphan that was stopped gets SIGTERM, too', async () => {
  const directory = await freshDirectory()
  const left = await startGroup('trap "echo bye > goodbye; exit 0" TERM;', directory)
  new ChildRecords(directory).add('pc:left', left.pid)
  process.kill(-left.pid, 'SIGSTOP')
  const end = once(left, 'exit')
  expect(await reapLeftovers(directory, 10_000)).toEqual(['pc:left'])
  expect(await end).toEqual([0, null])
  expect(await readFile(join(directory, 'goodbye'), 'utf8')).toBe('bye\n')
})

test('an orphan that ignores SIGTERM is killed, with its group', async () => {
  const directory = await freshDirectory()
  const stubborn = await startGroup(
    'trap "" TERM; (trap "" TERM; while :; do sleep 1; done) & echo "$!." > child; ',
    directory,
  )
  new ChildRecords(directory).add('qemu:1', stubborn.pid)
  const end = once(stubborn, 'exit')
  expect(await reapLeftovers(directory, 100)).toEqual(['qemu:1'])
  expect(await end).toEqual([null, 'SIGKILL'])
  const child = Number.parseInt(await readFile(join(directory, 'child'), 'utf8'), 10)
  expect(child).toBeGreaterThan(1)
  await expect.poll(() => identify(child)).toBeUndefined()
})

test('unreadable records are removed, and end no process', async () => {
  const directory = await freshDirectory()
  new ChildRecords(directory)
  for (const [index, text] of ['', '{', '{"pid":1,"key":"init"}', '{"pid":-1}', '[]'].entries()) {
    await writeFile(join(directory, 'children', `${index}.json`), text)
  }
  expect(await reapLeftovers(directory)).toEqual([])
  expect(await readdir(join(directory, 'children'))).toEqual([])
})

test('a record is private, may have any key, and is deleted when it is removed', async () => {
  const directory = await freshDirectory()
  const records = new ChildRecords(directory)
  const key = '../../escape:/\0'
  records.add(key, process.pid)
  const [name] = await readdir(join(directory, 'children'))
  const { mode } = await stat(join(directory, 'children', name ?? ''))
  expect(mode & 0o777).toBe(0o600)
  records.remove(key)
  records.remove(key)
  expect(await readdir(join(directory, 'children'))).toEqual([])
})

test('a process is the same as long as it runs; one that has ended has no identity', async () => {
  const child = await startGroup('')
  const identity = identify(child.pid)
  if (identity === undefined) throw new Error('no identity')
  expect(isSame(identity, identify(child.pid))).toBe(true)
  expect(isSame(identity, { ...identity, start_time: identity.start_time + 1 })).toBe(false)
  const end = once(child, 'exit')
  process.kill(-child.pid, 'SIGKILL')
  await end
  expect(identify(child.pid)).toBeUndefined()
})
