import { chmod, readdir } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { CellShell } from '../../../../runtime/node/os/sandbox/shell.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { processesWith } from '../../../support/processes.ts'
import { requireProgram, requireRoot } from '../../../support/require.ts'
import { confinementBy } from '../../../support/sandbox.ts'
import { describeWith } from '../../../support/test-with.ts'

const limits = { ms: 20_000, maxBytes: 1 << 16 }

for (const by of ['bubblewrap', 'namespaces'] as const) {
  describeWith(requireRoot(), by === 'bubblewrap' && requireProgram('bwrap'))(`the shell of a cell: ${by}`, () => {
    async function shellIn(directory?: string) {
      const writable = directory === undefined ? [] : [directory]
      const shell = new CellShell(await confinementBy(by), { cwd: directory ?? '/', network: 'none', writable })
      onTestFinished(() => shell.close())
      return { shell, sh: (script: string, more = {}) => shell.run('/bin/sh', ['-c', script], { ...limits, ...more }) }
    }

    test('runs programs one after the other, and reports the end of each', async () => {
      const { sh } = await shellIn()
      const namespaces = () => sh('readlink /proc/self/ns/mnt /proc/self/ns/pid')
      const first = await namespaces()
      expect(first).toMatchObject({ error: null, stderr: '' })
      expect(await sh('printf out; printf err >&2; exit 3')).toMatchObject({
        ...{ stdout: 'out', stderr: 'err', error: { code: 3 } },
      })
      expect(await sh('kill -9 $$')).toMatchObject({ error: { code: 128 + 9 } })
      expect(await namespaces()).toEqual(first)
    })

    test('passes words unchanged', async () => {
      const directory = await freshDirectory()
      await chmod(directory, 0o777)
      const { shell } = await shellIn(directory)
      const words = [
        ...["it's", '"', '$(touch pwned)', '`touch pwned`', '; touch pwned', '& touch pwned', '> pwned', '\\', "'\\''"],
        ...['*', '~', '#', '-n', '', ' ', '\n', 'a\ntouch pwned\n', "'\ntouch pwned\n'", '\t', 'é', '磁盘', '\u001b'],
      ]
      const { error, stdout } = await shell.run('/usr/bin/perl', ['-e', 'print join "\\0", @ARGV', ...words], limits)
      expect(error).toBeNull()
      expect(stdout.split('\0')).toEqual(words)
      expect(await readdir(directory)).toEqual([])
    })

    test('returns the output of a program that writes much, and in pieces', async () => {
      const { sh } = await shellIn()
      const script = 'i=0; while [ $i -lt 2000 ]; do echo line $i; echo error $i >&2; i=$((i + 1)); done'
      const { error, stdout, stderr } = await sh(script)
      expect(error).toBeNull()
      expect([stdout.split('\n').at(-2), stderr.split('\n').at(-2)]).toEqual(['line 1999', 'error 1999'])
    })

    test('gives a program no input, so that none reads the commands for the next one', async () => {
      const { sh } = await shellIn()
      expect(await sh('cat')).toEqual({ error: null, stdout: '', stderr: '' })
      expect(await sh('echo next')).toMatchObject({ stdout: 'next\n' })
    })

    test('leaves nothing when it is closed while it starts', async () => {
      const seconds = `${process.pid}10${by === 'bubblewrap' ? 1 : 2}`
      for (let ms = 0; ms < 20; ms++) {
        const { shell, sh } = await shellIn()
        const ended = sh(`sleep ${seconds}`)
        await delay(ms)
        shell.close()
        expect((await ended).error).not.toBeNull()
      }
      // A cell that went on would have come so far by now, too.
      const { sh } = await shellIn()
      expect((await sh('true')).error).toBeNull()
      // What was killed last may not have had its turn to end yet.
      await expect.poll(() => processesWith(`sleep ${seconds}`)).toEqual([])
    })

    test('ends with a program that hangs or has endless output', async () => {
      const hanging = await shellIn()
      const tooLong = { killed: true, message: 'it took longer than 300 ms' }
      const seconds = `${process.pid}00${by === 'bubblewrap' ? 1 : 2}`
      expect((await hanging.sh(`sleep ${seconds} & sleep ${seconds}`, { ms: 300 })).error).toMatchObject(tooLong)
      await expect.poll(() => processesWith(`sleep ${seconds}`)).toEqual([])
      expect(hanging.shell.isOpen).toBe(false)
      expect((await hanging.sh('echo')).error).toMatchObject({ message: 'its cell has ended' })
      const talking = await shellIn()
      expect((await talking.sh('yes')).error).toMatchObject({ message: 'it does not stop talking' })
      expect(talking.shell.isOpen).toBe(false)
    })

    test('reports a failure of the program that runs when the cell ends, whatever the exit code', async () => {
      for (const code of [0, 2]) {
        const { shell, sh } = await shellIn()
        const { error } = await sh(`kill -9 $PPID; exit ${code}`)
        expect(error).toMatchObject({ message: expect.stringMatching(/ended|Killed/) })
        expect(error?.code).toBeUndefined()
        expect(shell.isOpen).toBe(false)
      }
    })

    test('has the first program report why the cell could not start', async () => {
      const shell = new CellShell(await confinementBy(by), { cwd: '/nowhere', network: 'none' })
      const { error } = await shell.run('/bin/true', [], limits)
      expect(error).toMatchObject({ message: expect.stringMatching(/chdir \/nowhere: No such file/) })
    })
  })
}
