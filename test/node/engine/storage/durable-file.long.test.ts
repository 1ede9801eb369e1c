import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deleteProject, writeProject } from '../../../../runtime/node/engine/projects/project-record.ts'
import {
  readDurable,
  removeDurable,
  removeTemporaries,
  removeTreeDurable,
  removeVersionBefore,
  renameDurable,
  writeDurable,
} from '../../../../runtime/node/engine/storage/durable-file.ts'

import { freshDirectory } from '../../../support/directory.ts'
import { watchSyncs } from '../../../support/power-cut.ts'

const parse = (text: string): { value: number } => {
  const record = JSON.parse(text) as { value?: unknown }
  if (typeof record.value !== 'number') throw new Error('no record')
  return { value: record.value }
}
const record = (value: number) => JSON.stringify({ value })

test('a written record is private and can be read, and the version before is beside it', async () => {
  const directory = await freshDirectory()
  const path = join(directory, 'record.json')
  expect(await readDurable(path, parse)).toBeUndefined()
  for (const value of [1, 2, 3]) {
    await writeDurable(path, record(value))
    expect(await readDurable(path, parse)).toEqual({ value: { value }, damaged: false })
  }
  expect(await readFile(`${path}.bak`, 'utf8')).toBe(record(2))
  expect((await readdir(directory)).sort()).toEqual(['record.json', 'record.json.bak'])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test.each([
  ['empty', ''],
  ['cut off', '{"value":'],
  ['zeros', '\0\0\0\0'],
  ['of another shape', '{"value":"two"}'],
])('a record that is %s is replaced by the version before, and this is reported', async (_, text) => {
  const path = join(await freshDirectory(), 'record.json')
  await writeDurable(path, record(1))
  await writeDurable(path, record(2))
  await writeFile(path, text)
  expect(await readDurable(path, parse)).toEqual({ value: { value: 1 }, damaged: true })
  await writeFile(`${path}.bak`, text)
  expect(await readDurable(path, parse)).toBeUndefined()
})

test('a failed write leaves the record and no other file', async () => {
  const directory = await freshDirectory()
  const path = join(directory, 'record.json')
  await writeDurable(path, record(1))
  await expect(writeDurable(join(directory, 'none', 'record.json'), record(2))).rejects.toThrow('ENOENT')
  expect(await readdir(directory)).toEqual(['record.json'])
  await chmod(directory, 0o500)
  if (process.getuid?.() !== 0) await expect(writeDurable(path, record(2))).rejects.toThrow('EACCES')
  await chmod(directory, 0o700)
  expect(await readDurable(path, parse)).toMatchObject({ damaged: false })
})

test('files of killed writers are removed, and no others', async () => {
  const directory = await freshDirectory()
  for (const name of ['.writing-record.json-0a', '.writing-record.json-0a.bak', 'record.json', '.writin', 'x.writing-'])
    await writeFile(join(directory, name), name)
  await removeTemporaries(directory)
  expect((await readdir(directory)).sort()).toEqual(['.writin', 'record.json', 'x.writing-'])
  await removeTemporaries(join(directory, 'none'))
})

test('removals last over a power cut: of records, their versions before, directories, and projects', async () => {
  const directory = await freshDirectory()
  const afterPowerCut = await watchSyncs()
  const path = join(directory, 'record.json')
  for (const value of [1, 2]) await writeDurable(path, record(value))
  await writeDurable(join(directory, 'other.json'), record(1))
  await removeVersionBefore(path)
  expect(afterPowerCut(directory)).toEqual(['other.json', 'record.json'])
  await removeDurable(path)
  expect(afterPowerCut(directory)).toEqual(['other.json'])
  await removeDurable(join(directory, 'none', 'record.json'))

  const project = join(directory, 'project')
  const project_id = crypto.randomUUID()
  const facts = { version: 1, project_id, name: 'lab', temporary: false, variables: null, open: true, deleted: [] }
  await writeProject(project, facts)
  await writeDurable(join(project, '.patchbay', 'nodes', 'node.json'), record(1))
  await deleteProject(project, project_id)
  expect(afterPowerCut(project)).toEqual([])
  await writeProject(project, facts)
  await removeTreeDurable(join(project, '.patchbay'))
  expect(afterPowerCut(project)).toEqual([])
})

/** Writes 3 in a process of its own, which is killed by -9 just before its n-th call of the file system. */
async function writeAndDie(path: string, step: number): Promise<boolean> {
  const program = `
    import fs from 'node:fs/promises'
    import { syncBuiltinESMExports } from 'node:module'
    let left = ${step}
    const counted = (call) => function (...args) {
      if (--left < 0) process.kill(process.pid, 'SIGKILL')
      return call.apply(this, args)
    }
    const handle = await fs.open(${JSON.stringify(path)}, 'a')
    const methods = Object.getPrototypeOf(handle)
    await handle.close()
    for (const name of ['open', 'link', 'rename', 'rm', 'mkdir']) fs[name] = counted(fs[name])
    for (const name of ['writeFile', 'sync', 'close']) methods[name] = counted(methods[name])
    syncBuiltinESMExports()
    const { writeDurable } = await import(${JSON.stringify(new URL('../../../../runtime/node/engine/storage/durable-file.ts', import.meta.url).href)})
    await writeDurable(${JSON.stringify(path)}, ${JSON.stringify(record(3))})
    if (left === ${step}) throw new Error('no step was counted')
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  if (signal === null && code !== 0) throw new Error(`the writer ended with ${code}`)
  return signal === 'SIGKILL'
}

for (const [what, before] of [
  ['whole', record(2)],
  ['damaged', '{"val'],
] as const) {
  test(`a writer that is killed between any two of its steps loses nothing, also when the record was ${what}`, async () => {
    const directory = await freshDirectory()
    const path = join(directory, 'record.json')
    const readable = what === 'whole' ? 2 : 1
    let steps = 0
    for (let isKilled = true; isKilled; steps++) {
      await writeFile(path, before)
      await writeFile(`${path}.bak`, record(1))
      isKilled = await writeAndDie(path, steps)
      const found = await readDurable(path, parse)
      expect([readable, 3]).toContain(found?.value.value)
      if (!isKilled) expect(found?.value.value).toBe(3)
      await removeTemporaries(directory)
      expect((await readdir(directory)).sort()).toEqual(['record.json', 'record.json.bak'])
    }
    // Opened, written, synced, linked, renamed twice, directory opened, synced; and once not killed.
    expect(steps).toBeGreaterThanOrEqual(9)
  })
}

test('a renamed record has its new name after a power cut, and the version before is gone', async () => {
  const directory = await freshDirectory()
  const afterPowerCut = await watchSyncs()
  const path = join(directory, 'record.json')
  for (const value of [1, 2]) await writeDurable(path, record(value))
  expect(await renameDurable(path, join(directory, 'other.json'))).toBe(true)
  expect(afterPowerCut(directory)).toEqual(['other.json'])
  expect(await renameDurable(path, join(directory, 'other.json'))).toBe(false)
  expect(await readDurable(join(directory, 'other.json'), parse)).toMatchObject({ value: { value: 2 } })
})

test('concurrent removals share syncs of their directory, and each ends only after a sync that began later', async () => {
  const directory = await freshDirectory()
  const names = Array.from({ length: 50 }, (_, number) => `${number}.json`)
  for (const name of names) await writeFile(join(directory, name), record(1))
  let syncs = 0
  const afterPowerCut = await watchSyncs(() => syncs++)
  const removed = names.map(async (name) => {
    await removeDurable(join(directory, name))
    expect(afterPowerCut(directory)).not.toContain(name)
  })
  await Promise.all(removed)
  expect(syncs).toBeLessThan(names.length)
  expect(afterPowerCut(directory)).toEqual([])
})
