import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ProjectFiles } from '../../../../runtime/node/engine/projects/files.ts'
import { OpenProject } from '../../../../runtime/node/engine/projects/open-project.ts'
import { Checksums } from '../../../../runtime/node/engine/storage/checksums.ts'
import { openDirectory, openRegular } from '../../../../runtime/node/engine/storage/stored-file.ts'
import { notFound } from '../../../../src/lib/errors/api-error.ts'
import { bodyOf, slowBody, textOf } from '../../../support/bodies.ts'
import { freshDirectory } from '../../../support/directory.ts'

const id = '11111111-1111-4111-8111-111111111111'
const status = (code: number) => expect.objectContaining({ status: code })

async function openFiles({ minFreeMb = 0, bodyTimeoutMs = 5000 } = {}): Promise<{ root: string; files: ProjectFiles }> {
  const root = await freshDirectory()
  const checksums = new Checksums()
  onTestFinished(() => checksums.close())
  const record = {
    version: 1 as const,
    project_id: id,
    name: null,
    temporary: false,
    variables: null,
    open: true,
    deleted: [],
  }
  const project = new OpenProject(record, root, root)
  const files = new ProjectFiles({
    project: async (projectId) => {
      if (projectId !== id) throw notFound('no such project')
      return project
    },
    checksums,
    minFreeMb: () => minFreeMb,
    bodyTimeoutMs,
    gather: async () => {},
  })
  return { root, files }
}

test('a file that is written can be read, with its size and time, and is listed with its checksum', async () => {
  const { root, files } = await openFiles()
  await files.write(id, 'configs/start.txt', bodyOf('one ', 'two'), { parents: true })
  await files.write(id, 'empty', bodyOf(), { parents: false })
  const { content, size, modified } = await files.read(id, 'configs/start.txt')
  expect(await textOf(content)).toBe('one two')
  expect(size).toBe(7)
  expect(modified).toBe((await stat(join(root, 'configs/start.txt'))).mtimeMs)
  expect(await textOf((await files.read(id, 'empty')).content)).toBe('')
  const md5sum = (it: string) => createHash('md5').update(it).digest('hex')
  expect(await files.list(id)).toEqual([
    { path: 'configs/start.txt', md5sum: md5sum('one two') },
    { path: 'empty', md5sum: md5sum('') },
  ])
})

test('the list has regular files only: no records of the service, no symbolic links, no pipes, no deleted files, no unfinished uploads', async () => {
  const { root, files } = await openFiles()
  for (const path of ['.patchbay/nodes', 'a/.patchbay']) await mkdir(join(root, path), { recursive: true })
  for (const path of ['.patchbay/project.json', 'a/.patchbay/mine', 'disk.ghost', 'a/b', '.hidden', 'my.upload'])
    await writeFile(join(root, path), 'x')
  await symlink('/etc', join(root, 'etc'))
  await symlink('a/b', join(root, 'link'))
  execFileSync('mkfifo', [join(root, 'pipe')])
  const { stream, wanted, more } = slowBody('begun')
  const writing = files.write(id, 'later', stream, { parents: false })
  await wanted
  const paths = (await files.list(id)).map(({ path }) => path)
  more('')
  await writing
  expect(paths).toEqual(['.hidden', 'a/.patchbay/mine', 'a/b', 'my.upload'])
})

test('only files of the project can be read: 404 for a missing file, a directory or a pipe, 403 outside of the project', async () => {
  const { root, files } = await openFiles()
  await mkdir(join(root, 'directory'))
  await writeFile(join(root, 'file'), '')
  execFileSync('mkfifo', [join(root, 'pipe')])
  await symlink('/etc/passwd', join(root, 'passwd'))
  for (const path of ['none', 'none/deep', 'file/below', 'directory', 'pipe'])
    await expect(files.read(id, path)).rejects.toEqual(status(404))
  for (const path of ['../x', '/etc/passwd', 'passwd', '.patchbay/project.json'])
    await expect(files.read(id, path)).rejects.toEqual(status(403))
  await expect(files.read('22222222-2222-4222-8222-222222222222', 'file')).rejects.toEqual(status(404))
})

test('a reader sees the old file or the new one, never a part', async () => {
  const { root, files } = await openFiles()
  await files.write(id, 'file', bodyOf('the old text'), { parents: false })
  const reading = await files.read(id, 'file')
  const { stream, wanted, more } = slowBody('the new ')
  const writing = files.write(id, 'file', stream, { parents: false })
  await wanted
  expect(await readFile(join(root, 'file'), 'utf8')).toBe('the old text')
  more('text')
  await writing
  expect(await readFile(join(root, 'file'), 'utf8')).toBe('the new text')
  expect(await textOf(reading.content)).toBe('the old text')
})

test('a body that breaks off or stops coming leaves the old file and no other', async () => {
  const { root, files } = await openFiles({ bodyTimeoutMs: 100 })
  await files.write(id, 'file', bodyOf('old'), { parents: false })
  const broken = slowBody('half')
  const writing = files.write(id, 'file', broken.stream, { parents: false })
  await broken.wanted
  broken.fail()
  await expect(writing).rejects.toEqual(status(400))
  await expect(files.write(id, 'file', slowBody('half').stream, { parents: false })).rejects.toEqual(status(408))
  expect(await readFile(join(root, 'file'), 'utf8')).toBe('old')
  expect(await readdir(root)).toEqual(['file'])
})

test('a path that cannot be written is refused: 404 without a parent, 409 for another type of file, 403 outside of the project', async () => {
  const { root, files } = await openFiles()
  await mkdir(join(root, 'directory'))
  await writeFile(join(root, 'file'), 'old')
  await symlink('/', join(root, 'out'))
  await symlink('nowhere/at/all', join(root, 'dangling'))
  await symlink('loop', join(root, 'loop'))
  const write = (path: string, parents: boolean) => files.write(id, path, bodyOf('x'), { parents })
  await expect(write('none/file', false)).rejects.toEqual(status(404))
  await expect(write('directory', true)).rejects.toEqual(status(409))
  await expect(write('file/below', true)).rejects.toEqual(status(409))
  await expect(write('file/below', false)).rejects.toEqual(status(409))
  await expect(write('dangling/below', true)).rejects.toEqual(status(409))
  await expect(write('dangling/below', false)).rejects.toEqual(status(404))
  await expect(write('loop/below', true)).rejects.toEqual(status(409))
  await expect(write('new/', true)).rejects.toEqual(status(400))
  await expect(write('a'.repeat(256), true)).rejects.toEqual(status(409))
  for (const path of ['../x', 'out/tmp/x', '.patchbay/project.json', 'directory/../../x'])
    await expect(write(path, true)).rejects.toEqual(status(403))
  expect((await readdir(root)).sort()).toEqual(['dangling', 'directory', 'file', 'loop', 'out'])
  expect(await readFile(join(root, 'file'), 'utf8')).toBe('old')
})

test('a name may be as long as the file system takes, in any script', async () => {
  const { root, files } = await openFiles()
  for (const name of ['a'.repeat(255), '面'.repeat(85), '😀'.repeat(63)]) {
    await files.write(id, name, bodyOf('x'), { parents: false })
    expect(await readFile(join(root, name), 'utf8')).toBe('x')
  }
})

test('nothing is written when the disk is nearly full', async () => {
  const { root, files } = await openFiles({ minFreeMb: Number.MAX_SAFE_INTEGER })
  await expect(files.write(id, 'file', bodyOf('x'), { parents: true })).rejects.toEqual(status(507))
  expect(await readdir(root)).toEqual([])
})

test('a large body is written completely and can be read back while it grows no further', async () => {
  const { root, files } = await openFiles()
  const piece = 'x'.repeat(1 << 20)
  await files.write(id, 'disk', bodyOf(...Array.from({ length: 20 }, () => piece)), { parents: false })
  expect((await stat(join(root, 'disk'))).size).toBe(20 << 20)
  const { content, size } = await files.read(id, 'disk')
  await writeFile(join(root, 'disk'), 'more', { flag: 'a' })
  expect((await new Response(content).arrayBuffer()).byteLength).toBe(size)
})

test('a directory that became a symbolic link after its path was resolved is neither read nor written', async () => {
  const [root, outside] = [await freshDirectory(), await freshDirectory()]
  await writeFile(join(outside, 'secret'), 'a secret of the host')
  await mkdir(join(root, 'node'))
  await writeFile(join(root, 'node/secret'), 'of the node')
  const missing = () => notFound('gone')
  await (await openRegular(join(root, 'node/secret'), missing)).close()
  await rename(join(root, 'node'), join(root, 'away'))
  await symlink(outside, join(root, 'node'))
  await expect(openRegular(join(root, 'node/secret'), missing)).rejects.toEqual(status(404))
  await expect(openDirectory(join(root, 'node'), missing)).rejects.toEqual(status(404))
  await mkdir(join(outside, 'below'))
  await expect(openDirectory(join(root, 'node/below'), missing)).rejects.toEqual(status(404))
})

test('a directory that becomes a symbolic link during an upload does not lead out of the project', async () => {
  const { root, files } = await openFiles()
  const outside = await freshDirectory()
  await mkdir(join(root, 'node'))
  let isSwapped = false
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (isSwapped) return controller.close()
        isSwapped = true
        await rename(join(root, 'node'), join(root, 'away'))
        await symlink(outside, join(root, 'node'))
        controller.enqueue(new TextEncoder().encode('text'))
      },
    },
    { highWaterMark: 0 },
  )
  await files.write(id, 'node/file', body, { parents: false })
  expect(await readdir(outside)).toEqual([])
  expect(await readFile(join(root, 'away/file'), 'utf8')).toBe('text')
})
