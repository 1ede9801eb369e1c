import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ChildProcessRunner } from '../../../../runtime/node/keeper/process/child-process.ts'
import { freshDirectory } from '../../../support/directory.ts'

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
