import { expect, test } from 'vitest'
import { agentThatAnswers, isBadGateway } from '../../../support/answering-agent.ts'

const own = '10000000-0000-4000-8000-000000000000'

test.for(['../x', 'a/../../x', '/etc/x', 'a//b', '.', '', 'a/\0', '\ud800'])(
  'a list of files with %j is a bad gateway',
  async (path) => {
    await isBadGateway(
      agentThatAnswers([{ path: 'notes' }, { path }]).files.list(own, { sums: false }),
      /a file of the name/,
    )
  },
)

test('a file may have dots in its name', async () => {
  const files = [{ path: '.hidden/..x/a..b' }]
  expect(await agentThatAnswers(files).files.list(own, { sums: false })).toEqual(files)
})
