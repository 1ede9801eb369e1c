import { expect, onTestFinished, test } from 'vitest'
import { commands } from '../../../runtime/node/cli/commands.ts'
import { help } from '../../../runtime/node/cli/help.ts'

test('the first word of several commands has a help that lists them', async () => {
  const text = await (await help(['tokens'], commands)).text()
  expect(text).toContain('Usage: patchbay tokens COMMAND')
  expect([...text.matchAll(/^ {2}(\w+ \w+) /gm)].map(([, name]) => name)).toEqual([
    ...['tokens ls', 'tokens create', 'tokens rm'],
  ])
})

test('every command has a help, which fits a terminal of 80 columns', async () => {
  const { columns } = process.stdout
  onTestFinished(() => {
    process.stdout.columns = columns
  })
  process.stdout.columns = 80
  // The settings are a list of their own.
  const shown = Object.entries(commands).filter(([, { settings }]) => settings !== 'list')
  for (const words of [[], ...shown.map(([name]) => [name])]) {
    const lines = (await (await help(words, commands)).text()).split('\n')
    expect(lines.filter((it) => it.length > 80)).toEqual([])
    if (words.length > 0) expect(lines[0]).toMatch(`patchbay ${words}`)
  }
})
