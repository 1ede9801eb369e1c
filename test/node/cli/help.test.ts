import { expect, onTestFinished, test } from 'vitest'
import { help } from '../../../runtime/node/cli/help.ts'
import { commands } from '../../../runtime/node/commands.ts'

test('help fits a terminal of 80 columns', async () => {
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
  }
})
