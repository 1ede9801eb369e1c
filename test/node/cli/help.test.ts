import { stripVTControlCharacters } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { commands } from '../../../runtime/node/cli/commands.ts'
import { help } from '../../../runtime/node/cli/help.ts'

test('the first word of several commands has a help that lists them', async () => {
  const text = await (await help(['tokens'], commands)).text()
  expect(text).toContain('Usage: patchbay tokens COMMAND')
  expect([...text.matchAll(/^ {2}(\w+ \w+) /gm)].map(([, name]) => name)).toEqual([
    ...['tokens ls', 'tokens create', 'tokens rm', 'tokens key'],
  ])
})

test('every command has a help, which fits a terminal of 80 columns', async () => {
  const { columns, isTTY } = process.stdout
  onTestFinished(() => {
    Object.assign(process.stdout, { columns, isTTY })
  })
  Object.assign(process.stdout, { columns: 80, isTTY: true })
  for (const words of [[], ...Object.keys(commands).map((name) => [name])]) {
    const lines = stripVTControlCharacters(await (await help(words, commands)).text()).split('\n')
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    if (words.length > 0) expect(lines[0]).toMatch(`patchbay ${words}`)
  }
})
