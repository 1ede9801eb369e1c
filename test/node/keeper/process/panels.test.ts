import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Panels } from '../../../../runtime/node/keeper/process/panels.ts'
import { freshDirectory } from '../../../support/directory.ts'

function panels() {
  const log = vi.fn<(message: string) => void>()
  return { log, panels: new Panels(log) }
}

test('a panel that failed is tried again after a minute', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { log, panels: all } = panels()
  const directory = await freshDirectory()
  const script = join(directory, 'panel')
  const open = () => all.open({ command: '/bin/sh', args: [script] })
  await writeFile(script, 'echo first >&2')
  expect(await open()).toBeUndefined()
  await writeFile(script, 'echo second >&2')
  expect(await open()).toBeUndefined()
  vi.advanceTimersByTime(60_000)
  await open()
  expect(log.mock.calls.map(([message]) => message.split(': ').at(-1))).toEqual(['first', 'second'])
})
