import { expect, test } from 'vitest'
import { clientOf, isBadGateway } from '../../../support/answering-client.ts'

const own = '10000000-0000-4000-8000-000000000000'

test.for(['../x', 'a/../../x', '/etc/x', 'a//b', '.', '', 'a/\0', '\ud800'])(
  'a list of files with %j is a bad gateway',
  async (path) => {
    await isBadGateway(clientOf([{ path: 'notes' }, { path }]).files(own), /a file of the name/)
  },
)

test('a file may have dots in its name', async () => {
  const files = [{ path: '.hidden/..x/a..b' }]
  expect(await clientOf(files).files(own)).toEqual(files)
})
