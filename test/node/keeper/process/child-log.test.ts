import { execFileSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keeperDirectory } from '../../../../runtime/node/keeper/process/generation.ts'
import { emptyKeeper } from '../../../support/keeper.ts'
import { processesWith } from '../../../support/processes.ts'

test('a log that is a FIFO, a link or a device is refused, and the keeper goes on', async () => {
  const { data, client, shell } = await emptyKeeper()
  const there = join(data, 'there')
  await writeFile(there, 'mine')
  execFileSync('mkfifo', [join(data, 'fifo')])
  await symlink(there, join(data, 'link'))
  for (const log of [join(data, 'fifo'), join(data, 'link'), '/dev/null', data]) {
    const started = shell('iou:a', 'echo bad >&2; sleep 9', { log })
    await expect(started, log).rejects.toMatchObject({ code: 'spawn_failed' })
  }
  expect(await readFile(there, 'utf8')).toBe('mine')
  expect((await client.call('inventory', {})).units).toEqual([])
})

test('a file that replaces the log of a child is not read for its last output', async () => {
  const { data, client, shell, exit } = await emptyKeeper()
  await writeFile(join(data, 'secret'), 'a secret')
  await shell('iou:a', 'rm a.log; mkfifo a.log; exit 3', { log: join(data, 'a.log') })
  expect(await exit()).toMatchObject({ key: 'iou:a', exit: { code: 3, last_words: '' } })
  await shell('iou:b', 'rm b.log; ln -s secret b.log; exit 3', { log: join(data, 'b.log') })
  expect(await exit()).toMatchObject({ key: 'iou:b', exit: { code: 3, last_words: '' } })
  await shell('iou:c', 'echo why >&2; exit 3', { log: join(data, 'c.log') })
  expect(await exit()).toMatchObject({ key: 'iou:c', exit: { last_words: 'why' } })
  await client.call('unit.stop', { key: 'iou:a', grace_ms: 0 })
})

test('a child whose record cannot be written does not run: the next keeper would not find it', async () => {
  const { data, client, shell } = await emptyKeeper()
  const mark = randomUUID()
  const record = createHash('sha256').update('iou:a').digest('hex').slice(0, 32)
  await mkdir(join(keeperDirectory(data), 'children', `${record}.json`))
  const started = shell('iou:a', `sleep 9; : ${mark}`)
  await expect(started).rejects.toMatchObject({ code: 'spawn_failed' })
  expect((await client.call('inventory', {})).units).toEqual([])
  expect(processesWith(mark)).toEqual([])
})
