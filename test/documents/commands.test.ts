import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commands } from '../../runtime/node/cli/commands.ts'
import { commandsPage } from '../../scripts/commands-page.ts'

test('docs/commands.md is the output of scripts/commands-page.ts for the table of commands', async () => {
  const text = await readFile(join(import.meta.dirname, '../../docs/commands.md'), 'utf8')
  expect(text).toBe(await commandsPage())
})

test('every command has --json, except console, mcp and serve', () => {
  const without = Object.entries(commands).filter(([, { flags, hidden }]) => hidden !== true && !('json' in flags))
  expect(without.map(([name]) => name)).toEqual(['console', 'serve', 'mcp'])
})
