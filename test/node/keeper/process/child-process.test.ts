import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ChildProcessRunner } from '../../../../runtime/node/keeper/process/child-process.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { processesWith } from '../../../support/processes.ts'

test('programs that start together start in separate turns of the event loop', async () => {
  const cwd = await freshDirectory()
  let turn = 0
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const turns = await Promise.all(
    Array.from({ length: 5 }, async (_, index) => {
      const log = join(cwd, `${index}.log`)
      const runner = await ChildProcessRunner.start(
        { type: 'process', command: '/bin/sleep', args: ['60'], cwd, log, stdio: 'pipe' },
        () => {},
      )
      onTestFinished(() => void runner.stop(0))
      return turn
    }),
  )
  isOver = true
  expect(new Set(turns).size).toBe(5)
})

test('a cell that does not report its start is ended, with all that it has started', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const cwd = await freshDirectory()
  const words = { command: '/bin/sh', args: ['-c', 'sleep 7532; true'] }
  const started = ChildProcessRunner.start(
    { type: 'process', ...words, cwd, log: join(cwd, 'log'), stdio: 'pipe', is_wrapped: true },
    () => {},
  )
  const refused = expect(started).rejects.toMatchObject({
    code: 'spawn_failed',
    message: expect.stringContaining('has not begun within 20 s'),
  })
  const isStarted = () => processesWith('sleep 7532').some(({ args }) => args === 'sleep 7532')
  while (!isStarted()) await turn()
  vi.advanceTimersByTime(20_000)
  await refused
  while (isStarted()) await turn()
})
