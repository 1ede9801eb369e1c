import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')

test('the types of the client are those of the endpoints (npx node scripts/client-types.ts makes them)', async () => {
  const directory = await mkdtemp(join(root, 'test/fixtures/.calls-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const made = join(directory, 'calls.ts')
  await promisify(execFile)(process.execPath, [join(root, 'scripts/client-types.ts'), made])
  expect(await readFile(join(root, 'src/client/calls.ts'), 'utf8')).toBe(await readFile(made, 'utf8'))
})
