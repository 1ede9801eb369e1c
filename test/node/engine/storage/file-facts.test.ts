import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FileFacts } from '../../../../runtime/node/engine/storage/file-facts.ts'
import { freshDirectory } from '../../../support/directory.ts'

/** The names in a directory, and how often they were looked at. */
async function names() {
  const parent = await freshDirectory()
  const directory = join(parent, 'node')
  await mkdir(directory)
  const facts = new FileFacts<string[]>()
  onTestFinished(() => facts.forget('a'))
  const state = { looks: 0, found: [] as string[] }
  const look = () => {
    state.looks++
    return state.found
  }
  /** What is shown now; the directory is read before, as `look` must not wait. */
  const shown = async (path = directory) => {
    state.found = await readdir(path).catch(() => [])
    return facts.get('a', path, () => [path], look)
  }
  return { directory, facts, shown, state }
}

test('files are read once, and again after another program has changed them', async () => {
  const { directory, shown, state } = await names()
  expect(await shown()).toEqual([])
  expect(await shown()).toEqual([])
  expect(state.looks).toBe(1)
  await writeFile(join(directory, 'startup.vpc'), 'set pcname PC')
  await expect.poll(() => shown()).toEqual(['startup.vpc'])
  const { looks } = state
  await writeFile(join(directory, 'startup.vpc'), 'set pcname R1')
  await expect.poll(async () => (await shown()) && state.looks).toBeGreaterThan(looks)
})

test('files that this program has changed are read without waiting for the event', async () => {
  const { facts, shown, state } = await names()
  await shown()
  facts.forget('a')
  await shown()
  expect(state.looks).toBe(2)
})

test('a replaced directory is read again', async () => {
  const { directory, shown } = await names()
  await shown()
  await mkdir(`${directory}.copy`)
  await writeFile(join(`${directory}.copy`, 'startup.vpc'), '')
  await rename(directory, `${directory}.old`)
  await rename(`${directory}.copy`, directory)
  await expect.poll(() => shown()).toEqual(['startup.vpc'])
})

test('a directory that was deleted and created again is read each time', async () => {
  const { directory, shown } = await names()
  await writeFile(join(directory, 'startup.vpc'), '')
  expect(await shown()).toEqual(['startup.vpc'])
  await rm(directory, { recursive: true })
  await expect.poll(() => shown()).toEqual([])
  await mkdir(directory)
  await writeFile(join(directory, 'other'), '')
  await expect.poll(() => shown()).toEqual(['other'])
})

test('the files at the new path are read when the project has moved', async () => {
  const { directory, shown, state } = await names()
  await shown()
  await rename(directory, `${directory}-moved`)
  await writeFile(join(`${directory}-moved`, 'startup.vpc'), '')
  expect(await shown(`${directory}-moved`)).toEqual(['startup.vpc'])
  expect(state.looks).toBe(2)
})
