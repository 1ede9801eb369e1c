import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findIds } from '../../../../runtime/node/drivers/container/ids.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const anna = { ...userInfo(), uid: 1234, username: 'anna' }

async function filesWith(uids: string, gids = uids) {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const files = { uid: join(directory, 'subuid'), gid: join(directory, 'subgid') }
  await writeFile(files.uid, uids)
  await writeFile(files.gid, gids)
  return files
}

test('root maps a range of its own', () => {
  expect(findIds({ ...anna, uid: 0 })).toEqual({
    ids: { by: 'root', firstUid: 0x7000_0000, firstGid: 0x7000_0000, count: 65_536 },
  })
})

testWith(requireProgram('newuidmap'))('another user has the ids of /etc/subuid, by name or number', async () => {
  const of = async (...texts: [string, string?]) => findIds(anna, await filesWith(...texts))
  const ids = { by: 'newuidmap', firstUid: 100_000, firstGid: 300_000, count: 65_536 }
  expect(await of('bert:1:65536\nanna:100000:65536\n', '1234:300000:65536')).toEqual({ ids })
  // A range that is too small for an image is none.
  expect(await of('anna:100000:1000\n')).toMatchObject({
    reason: 'anna has no 65536 ids in /etc/subuid and /etc/subgid',
  })
  expect(await of('')).toMatchObject({ fix: expect.stringMatching(/^sudo usermod --add-subuids .* anna$/) })
  expect(findIds(anna, { uid: '/absent', gid: '/absent' })).toHaveProperty('reason')
})
