import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const launcher = join(import.meta.dirname, '../../../../scripts/patchbay')

test('scripts/patchbay hands every flag on without "--", from any directory and through a link', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-launcher-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  await symlink(launcher, join(directory, 'pb'))
  const call = promisify(execFile)('./pb', ['ls', '--json', '--server', 'not a URL'], { cwd: directory })
  const { code, stdout, stderr } = await call.then(
    (answer) => ({ code: 0, ...answer }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
  expect(code).not.toBe(0)
  expect(stdout + stderr).toContain('not a URL')
})
