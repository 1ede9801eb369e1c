import { appendFile, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { PlacementLog } from '../../../../runtime/node/service/fleet/placement-log.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { openRecords } from '../../../support/service-records.ts'

async function opened(data: string, minFreeMb = 0): Promise<PlacementLog> {
  const placements = await PlacementLog.open((await openRecords({ data, minFreeMb })).records)
  onTestFinished(() => placements.close())
  return placements
}

test('placements are stored over a restart, and removed ones are not', async () => {
  const data = await freshDirectory()
  const [kept, moved, gone] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  const first = await opened(data)
  await Promise.all([first.put(kept, 'a'), first.put(moved, 'a'), first.put(gone, 'b')])
  await first.put(moved, 'b')
  await first.remove(gone)
  const second = await opened(data)
  expect(await Promise.all([kept, moved, gone].map((id) => second.get(id)))).toEqual(['a', 'b', undefined])
  expect((await stat(join(data, 'placements.log'))).mode & 0o777).toBe(0o600)
})

test('an incomplete line after a crash is ignored, and does not damage the next one', async () => {
  const data = await freshDirectory()
  const [kept, torn, next] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  await (await opened(data)).put(kept, 'a')
  // The id alone would mean that the project is gone.
  await appendFile(join(data, 'placements.log'), kept)
  const second = await opened(data)
  expect(await second.get(kept)).toBe('a')
  await second.put(next, 'b')
  await appendFile(join(data, 'placements.log'), `${torn} comp`)
  const third = await opened(data)
  expect(await Promise.all([kept, next, torn].map((id) => third.get(id)))).toEqual(['a', 'b', undefined])
})

test('the file is rewritten without old changes, so that it does not grow for ever', async () => {
  const data = await freshDirectory()
  const placements = await opened(data)
  const id = crypto.randomUUID()
  for (let round = 0; round < 15; round++) {
    await Promise.all(Array.from({ length: 100 }, (_, number) => placements.put(id, `c${round * 100 + number}`)))
  }
  await placements.put(id, 'last')
  expect((await readFile(join(data, 'placements.log'), 'utf8')).split('\n').length).toBeLessThan(1200)
  expect(await (await opened(data)).get(id)).toBe('last')
})

test('a placement that cannot be saved is refused, and has no effect', async () => {
  const placements = await opened(await freshDirectory(), Number.MAX_SAFE_INTEGER)
  const id = crypto.randomUUID()
  await expect(placements.put(id, 'a')).rejects.toMatchObject({ status: 507 })
  expect(await placements.get(id)).toBeUndefined()
})

test('when changes cannot be saved together, none has an effect, and the earlier placements stay', async () => {
  const data = await freshDirectory()
  const [kept, fresh] = [crypto.randomUUID(), crypto.randomUUID()]
  await (await opened(data)).put(kept, 'a')
  const placements = await opened(data)
  await rename(data, `${data}.away`)
  const changes = [placements.put(kept, 'b'), placements.put(kept, 'c'), placements.put(fresh, 'b')]
  const settled = await Promise.allSettled(changes)
  await rename(`${data}.away`, data)
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  const places = async (log: PlacementLog) => [await log.get(kept), await log.get(fresh)]
  expect(await places(placements)).toEqual(['a', undefined])
  expect(await places(await opened(data))).toEqual(['a', undefined])
  await placements.put(kept, 'a')
  await placements.put(kept, 'd')
  expect(await places(await opened(data))).toEqual(['d', undefined])
})
