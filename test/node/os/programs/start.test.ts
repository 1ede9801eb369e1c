import { expect, test } from 'vitest'
import { type RunOptions, runProgram } from '../../../../runtime/node/os/programs/start.ts'
import { hangMs } from '../../../support/limits.ts'
import { processesWith } from '../../../support/processes.ts'

const sh = (script: string, options: Partial<RunOptions> = {}) =>
  runProgram('/bin/sh', ['-c', script], { ms: hangMs, ...options })

test('returns the output and the exit code of a program, which has no input', async () => {
  expect(await sh('echo out; echo err >&2')).toEqual({ error: null, stdout: 'out\n', stderr: 'err\n' })
  expect(await sh('cat; exit 3')).toMatchObject({ error: { code: 3, message: 'it ended with code 3' }, stdout: '' })
  expect(await sh('kill -TERM $$')).toMatchObject({ error: { signal: 'SIGTERM', message: 'it was ended by SIGTERM' } })
})

test('gives it the listed variables, and those that are set', async () => {
  const { stdout } = await sh('echo "$LC_ALL-$npm_config_registry-$HOME"', { set: { LC_ALL: 'C' } })
  expect(stdout).toBe(`C--${process.env.HOME}\n`)
})

test('reports a missing program', async () => {
  const { error } = await runProgram('/no/such/program', [], { ms: hangMs })
  expect(error).toMatchObject({ code: 'ENOENT' })
})

test('a program whose child holds its output ends soon after it, and the child with it', async () => {
  const seconds = `${process.pid}30`
  expect(await sh(`sleep ${seconds} & echo done; exit 3`)).toMatchObject({ error: { code: 3 }, stdout: 'done\n' })
  await expect.poll(() => processesWith(`sleep ${seconds}`)).toEqual([])
  // What it writes soon is waited for.
  expect(await sh('(sleep 0.1; echo late) & echo soon')).toEqual({ error: null, stdout: 'soon\nlate\n', stderr: '' })
})

test('a child that does not hold the output of its program keeps running', async () => {
  const { stdout } = await sh('sleep 60 > /dev/null 2>&1 & echo $!')
  expect(() => process.kill(Number(stdout), 'SIGKILL')).not.toThrow()
})

test.each([
  ['takes too long', '', () => ({ ms: 200 }), { killed: true, message: 'it took longer than 200 ms' }],
  [
    ...['prints too much', 'yes &', () => ({ maxBytes: 1000 })],
    { code: 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER', message: 'it printed more than 1000 bytes' },
  ],
  // Its time begins with its test.
  ['is aborted', '', () => ({ signal: AbortSignal.timeout(200) }), { code: 'ABORT_ERR', message: 'it was aborted' }],
  ['is aborted before it starts', '', () => ({ signal: AbortSignal.abort() }), { code: 'ABORT_ERR' }],
] as [string, string, () => Partial<RunOptions>, object][])(
  'one that %s ends with what it started',
  async (...[, first, options, expected]) => {
    const seconds = `${process.pid}20`
    const { error, stdout } = await sh(`${first} sleep ${seconds} & sleep ${seconds}`, options())
    expect(error).toMatchObject(expected)
    expect(stdout.length).toBeLessThanOrEqual(1000)
    await expect.poll(() => processesWith(`sleep ${seconds}`)).toEqual([])
  },
)
