import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  checkedProjectPath,
  isInside,
  type PathRules,
  resolveInProject,
} from '../../../../runtime/node/engine/storage/paths.ts'
import { freshDirectory } from '../../../support/directory.ts'

const status = (code: number) => expect.objectContaining({ status: code })

/** A project beside a directory with a secret. */
async function openRoot(): Promise<{ root: string; outside: string }> {
  const base = await realpath(await freshDirectory())
  const [root, outside] = [join(base, 'project'), join(base, 'outside')]
  await mkdir(join(root, 'configs'), { recursive: true })
  await mkdir(join(root, '.patchbay', 'nodes'), { recursive: true })
  await mkdir(outside)
  await writeFile(join(outside, 'secret'), 'secret')
  await writeFile(join(root, 'configs', 'start.txt'), 'text')
  return { root, outside }
}

test('a path is inside another by its components, not by its letters', () => {
  expect(isInside('/a/b', '/a/b')).toBe(true)
  expect(isInside('/a/b', '/a/b/c')).toBe(true)
  expect(isInside('/a/b', '/a/b/..c')).toBe(true)
  expect(isInside('/a/b', '/a/bc')).toBe(false)
  expect(isInside('/a/b', '/a')).toBe(false)
  expect(isInside('/a/b', '/a/..b')).toBe(false)
  expect(isInside('/', '/anything')).toBe(true)
})

test('a file of the project is found by every form of its path that stays inside', async () => {
  const { root } = await openRoot()
  for (const path of [
    'configs/start.txt',
    './configs//start.txt',
    'configs/../configs/start.txt',
    'none/../configs/start.txt',
  ])
    expect(await resolveInProject(root, path)).toBe(join(root, 'configs', 'start.txt'))
  for (const path of ['new.txt', 'new/deep/file', '..hidden', 'a...', '%2e%2e/x', '~/x', '....//x'])
    expect(await resolveInProject(root, path)).toBe(join(root, path.replace('//', '/')))
})

test.each([
  '..',
  '../outside/secret',
  'configs/../../outside/secret',
  'configs/../..',
  './../outside/secret',
  'none/../../outside/secret',
  '../project/../outside/secret',
  '../projectile/secret',
  '/etc/passwd',
  '//etc/passwd',
  '..\\outside\\secret',
  'configs\\..\\..\\outside',
  '',
  '.',
  './',
  'configs/..',
])('the path %j does not lead out of the project', async (path) => {
  const { root } = await openRoot()
  await expect(resolveInProject(root, path)).rejects.toEqual(status(403))
})

test('a NUL character is refused', async () => {
  const { root } = await openRoot()
  await expect(resolveInProject(root, 'configs/start.txt\0.png')).rejects.toEqual(status(400))
})

test('a symbolic link that stays inside is followed, one that leads out is not', async () => {
  const { root, outside } = await openRoot()
  await symlink('configs', join(root, 'inside'))
  await symlink(outside, join(root, 'absolute'))
  await symlink('../outside', join(root, 'relative'))
  await symlink('absolute', join(root, 'twice'))
  await symlink('../outside/secret', join(root, 'file'))
  await symlink('loop', join(root, 'loop'))
  expect(await resolveInProject(root, 'inside/start.txt')).toBe(join(root, 'configs', 'start.txt'))
  expect(await resolveInProject(root, 'inside/new.txt')).toBe(join(root, 'configs', 'new.txt'))
  for (const path of ['absolute', 'absolute/secret', 'relative/secret', 'twice/secret', 'file', 'absolute/new/file'])
    await expect(resolveInProject(root, path)).rejects.toEqual(status(403))
  await expect(resolveInProject(root, 'loop/x')).rejects.toThrow('ELOOP')
})

test('the path of the project may contain a symbolic link', async () => {
  const { root, outside } = await openRoot()
  await symlink(root, join(outside, 'link'))
  expect(await resolveInProject(join(outside, 'link'), 'configs/start.txt')).toBe(join(root, 'configs', 'start.txt'))
})

test('the records of the service are not files of the project, by any path', async () => {
  const { root } = await openRoot()
  await symlink('.patchbay', join(root, 'records'))
  for (const path of [
    '.patchbay',
    '.patchbay/project.json',
    './/.patchbay/new',
    'configs/../.patchbay/x',
    'records/nodes',
  ])
    await expect(resolveInProject(root, path)).rejects.toEqual(status(403))
  expect(await resolveInProject(root, 'configs/.patchbay')).toBe(join(root, 'configs', '.patchbay'))
})

test('a project whose directory is gone is 404', async () => {
  const { root } = await openRoot()
  await expect(resolveInProject(join(root, 'gone'), 'x')).rejects.toEqual(status(404))
})

async function openRules(local: boolean): Promise<{ base: string; rules: PathRules }> {
  const base = await realpath(await freshDirectory())
  const rules = {
    dataDirectory: join(base, 'data'),
    projectsDirectory: join(base, 'data', 'projects'),
    isLocal: () => local,
  }
  await mkdir(join(base, 'data', 'run'), { recursive: true })
  await mkdir(rules.projectsDirectory)
  return { base, rules }
}

test('in local mode a project may be in any directory that has no data of the service or the home of the user', async () => {
  const { base, rules } = await openRules(true)
  expect(await checkedProjectPath(join(base, 'lab'), rules)).toBe(join(base, 'lab'))
  expect(await checkedProjectPath(`${base}/x/../lab/`, rules)).toBe(join(base, 'lab'))
  await symlink('data', join(base, 'link'))
  const { dataDirectory, projectsDirectory } = rules
  for (const path of [
    '/',
    base,
    dataDirectory,
    projectsDirectory,
    homedir(),
    join(base, 'link'),
    `${dataDirectory}/run/x`,
  ])
    await expect(checkedProjectPath(path, rules)).rejects.toEqual(status(403))
})

test('outside local mode a project is inside the projects directory, links resolved', async () => {
  const { base, rules } = await openRules(false)
  const { projectsDirectory } = rules
  expect(await checkedProjectPath(join(projectsDirectory, 'lab'), rules)).toBe(join(projectsDirectory, 'lab'))
  await mkdir(join(base, 'elsewhere'))
  await symlink(join(base, 'elsewhere'), join(projectsDirectory, 'link'))
  for (const path of [
    join(base, 'lab'),
    join(projectsDirectory, '..', 'lab'),
    join(projectsDirectory, 'link', 'lab'),
    projectsDirectory,
    `${projectsDirectory}2/lab`,
  ])
    await expect(checkedProjectPath(path, rules)).rejects.toEqual(status(403))
})

test('an invalid path of a directory is reported before anything is created', async () => {
  const { base, rules } = await openRules(true)
  await writeFile(join(base, 'file'), '')
  await expect(checkedProjectPath('lab', rules)).rejects.toEqual(status(400))
  await expect(checkedProjectPath(`${base}/a\0b`, rules)).rejects.toEqual(status(400))
  await expect(checkedProjectPath(`${base}/a"b`, rules)).rejects.toEqual(status(403))
  await expect(checkedProjectPath(`${base}/${'a/'.repeat(600)}`, rules)).rejects.toEqual(status(400))
  await expect(checkedProjectPath(`${base}/${'a'.repeat(300)}`, rules)).rejects.toEqual(status(403))
  await expect(checkedProjectPath(join(base, 'file'), rules)).rejects.toEqual(status(409))
})
