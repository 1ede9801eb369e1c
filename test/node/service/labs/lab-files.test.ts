import { appendFile, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { LabFiles } from '../../../../runtime/node/service/labs/lab-files.ts'
import { UnreadableLab } from '../../../../src/labs/lab/store.ts'
import { openRecords } from '../../../support/service-records.ts'

const id = '00000000-0000-4000-8000-000000000001'
const head = (revision: number) => ({ project_id: id, name: 'campus "{north}"', revision })
const drawing = (kib: number) => ({ svg: 'x'.repeat(kib * 1024) })

async function directory() {
  const { records, data } = await openRecords()
  const open = async (maxBytes = 256 * 2 ** 20) => {
    const files = await LabFiles.open(records, { maxBytes: () => maxBytes })
    onTestFinished(() => files.close())
    return files
  }
  return { data, open, path: join(data, 'labs', `${id}.jsonl`) }
}
const put = (files: LabFiles, revision: number, more: Record<string, unknown> = {}) =>
  files.save(id, new Map(Object.entries({ ...more, project: head(revision) })))

test('the head of a document is read from its end, also after lines without one and when the last line was torn', async () => {
  const { open, path } = await directory()
  const files = await open()
  for (const revision of [1, 2, 3]) await put(files, revision, { 'drawing/a': drawing(300) })
  await files.save(id, new Map([['boots', ['x'.repeat(200_000)]]]))
  await files.close()
  await appendFile(path, '{"project":{"name":"torn')
  const again = await open()
  expect(await again.heads()).toEqual(new Map([[id, { head: head(3) }]]))
  await put(again, 4)
  expect((await again.load(id))?.get('project')).toEqual(head(4))
  expect((await (await open()).heads()).get(id)).toEqual({ head: head(4) })
})

test('a document is rewritten when it is longer than twice its entries, and stays the same', async () => {
  const { open, path } = await directory()
  const files = await open()
  const ids = ['a', 'b', 'c']
  for (const it of ids) await put(files, 1, { [`drawing/${it}`]: drawing(300) })
  for (let revision = 2; revision < 14; revision++) await put(files, revision, { 'drawing/b': drawing(301) })
  expect((await stat(path)).size).toBeLessThan(4 * 2 ** 20)
  const entries = await (await open()).load(id)
  expect([...(entries ?? [])].filter(([key]) => key !== 'project').map(([key]) => key)).toEqual(
    ids.map((it) => `drawing/${it}`),
  )
  expect(entries?.get('drawing/b')).toEqual(drawing(301))
  expect((await (await open()).heads()).get(id)).toEqual({ head: head(13) })
})

test('a document of an earlier version, in one long line, shows its head; one that is too large is left as it is', async () => {
  const { open, path } = await directory()
  await (await open()).heads()
  const drawings = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`drawing/${index}`, drawing(1024)]))
  await writeFile(path, `${JSON.stringify({ project: head(7), ...drawings })}\n`)
  const before = await readFile(path)
  const small = await open(4 * 2 ** 20)
  expect(await small.heads()).toEqual(new Map([[id, { head: head(7) }]]))
  await expect(small.load(id)).rejects.toThrow(/needs at least .* MiB of memory.*limits\.open_labs_mb.*left as it is/)
  await expect(put(small, 8)).rejects.toThrow(UnreadableLab)
  expect((await readFile(path)).equals(before)).toBe(true)
  const files = await open()
  expect((await files.load(id))?.size).toBe(7)
  await put(files, 8)
  expect(await files.heads()).toEqual(new Map([[id, { head: head(8) }]]))
})

test.for([
  ['damaged at its end', '{"project":{', /damaged: a line near its end is not JSON/],
  ['of a newer version', JSON.stringify({ version: 99, project: {} }), /newer version of Patchbay/],
  ['not of objects', '[{"project":1}]', /is not an object of JSON/],
] as const)('a document that is %s is reported, and the others are there', async ([, line, reason]) => {
  const { open, path, data } = await directory()
  const files = await open()
  const other = '00000000-0000-4000-8000-000000000002'
  await put(files, 1)
  await files.save(other, new Map([['project', { name: 'other' }]]))
  await files.close()
  await appendFile(path, `${line}\n`)
  const heads = await (await open()).heads()
  expect(heads.get(other)).toEqual({ head: { name: 'other' } })
  expect(heads.get(id)).toMatchObject({ head: head(1), fault: expect.stringMatching(reason) })
  expect((await readdir(join(data, 'labs'))).sort()).toEqual([`${id}.jsonl`, `${other}.jsonl`])
})

test('a document that is damaged in its middle cannot be opened, and its head is shown', async () => {
  const { open, path } = await directory()
  const files = await open()
  await put(files, 1)
  await files.close()
  await appendFile(path, `no json\n${JSON.stringify({ project: head(2) })}\n`)
  const again = await open()
  expect((await again.heads()).get(id)).toEqual({ head: head(2) })
  await expect(again.load(id)).rejects.toThrow('its document is damaged: its line 2 is not JSON')
})

test('more documents than files may be open at a time are written', async () => {
  const { open } = await directory()
  const files = await open()
  const ids = Array.from({ length: 150 }, (_, index) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`)
  const save = (revision: number) =>
    Promise.all(ids.map((it) => files.save(it, new Map([['project', { name: it, revision }]]))))
  for (const revision of [1, 2, 3]) await save(revision)
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  )
  expect(links.filter((it) => it.includes('/labs/')).length).toBeLessThanOrEqual(64)
  const heads = await (await open()).heads()
  expect(ids.map((it) => heads.get(it)?.head)).toEqual(ids.map((name) => ({ name, revision: 3 })))
})
