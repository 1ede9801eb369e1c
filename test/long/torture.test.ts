import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { freshDirectory } from '../support/directory.ts'

const program = join(import.meta.dirname, '../torture/main.ts')

test('half a minute of kills, full disks, broken connections and conflicting requests loses nothing', async () => {
  const directory = await freshDirectory()
  const flags = ['--build', inject('bundled'), '--directory', directory]
  const child = spawn(process.execPath, [program, '0.5', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text))
  const [code] = await once(child, 'exit')
  expect({ code, said }).toEqual({ code: 0, said: expect.stringMatching(/losses +0\n/) })
})
