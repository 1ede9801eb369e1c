import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireEngine } from '../../../../runtime/node/drivers/container/engine.ts'
import { Layers } from '../../../../runtime/node/drivers/container/layers.ts'
import type { ContainerKindNode } from '../../../../runtime/node/drivers/container/properties.ts'
import { requireContainers } from '../../../support/container-image.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { type TarEntry, tarOf } from '../../../support/tar.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'

const containers = await requireContainers()
const signal = new AbortController().signal

/** A node with layers of its own, whose archive a test writes. */
async function nodeIn(root: string) {
  const directory = join(root, 'node')
  await mkdir(directory)
  const record = { node_id: randomUUID(), name: 'C1' } as ContainerKindNode['record']
  const node = { directory, record }
  const layers = new Layers(join(root, 'layers'), () => 0)
  const { ids } = requireEngine()
  return {
    archive: join(directory, 'layer.tar'),
    layer: layers.layerOf(record.node_id),
    prepare: () => layers.prepare(ids, node, signal),
    unpacked: () => layers.unpacked(ids, node, signal),
    gather: (to = directory) => layers.gather(ids, node, to),
    remove: () => layers.remove(ids, record.node_id),
  }
}

const head: readonly TarEntry[] = [
  { name: 'upper/', type: 'directory', mode: 0o755 },
  { name: 'files/', type: 'directory', mode: 0o755 },
]
const sum = '0123456789abcdef'.repeat(2)

testWith(containers)('a link in the place of an archive that is being made is not followed', async () => {
  const root = await freshDirectory()
  const { gather } = await nodeIn(root)
  const [outside, copy] = [join(root, 'outside'), join(root, 'copy')]
  await writeFile(outside, 'kept')
  await mkdir(copy)
  await symlink(outside, join(copy, 'layer.tar.part'))
  await gather(copy)
  expect(await readFile(outside, 'utf8')).toBe('kept')
  expect(await readdir(copy)).toEqual(['layer.tar'])
})

testWith(containers)('an archive becomes the layer, and the layer the same archive', async () => {
  const { archive, layer, prepare, gather, remove } = await nodeIn(await freshDirectory())
  const entries: readonly TarEntry[] = [
    ...head,
    { name: 'upper/etc/', type: 'directory', mode: 0o750 },
    { name: 'upper/etc/.wh..wh..opq', mode: 0 },
    { name: 'upper/etc/.wh.gone', mode: 0 },
    { name: 'upper/etc/conf', data: 'text', mode: 0o600 },
    { name: 'upper/etc/linked', type: 'hardLink', link: 'upper/etc/conf' },
    { name: 'upper/etc/outside', type: 'link', link: '/../../etc/shadow' },
    { name: 'upper/etc/pipe', type: 'pipe' },
    { name: `files/${sum}`, data: 'a file of the settings' },
  ]
  await writeFile(archive, tarOf(entries))
  await prepare()
  expect(existsSync(archive)).toBe(false)
  expect((await readdir(layer)).sort()).toEqual(['files', 'upper'])
  const size = await gather()
  const made = await readFile(archive)
  expect(made.byteLength).toBe(size)
  const names = [...made.toString('latin1').matchAll(/((?:upper|files)\/[^\0]*)\0/g)].map(([, name]) => name)
  expect([...new Set(names)].sort()).toEqual(entries.map(({ name }) => name).sort())
  // It is not unpacked again: it was made of this layer.
  await writeFile(join(layer, 'mark'), '')
  await prepare()
  expect(existsSync(archive)).toBe(false)
  expect(await readdir(layer)).toContain('mark')
  await gather()
  expect(await readFile(archive)).toEqual(made)
  await remove()
  expect(existsSync(layer)).toBe(false)
})

testWith(containers)('an archive stays where the layer is only read, and is not unpacked twice', async () => {
  const { archive, layer, unpacked, prepare, gather, remove } = await nodeIn(await freshDirectory())
  await writeFile(archive, tarOf([...head, { name: 'upper/x', data: 'x' }]))
  await unpacked()
  expect(existsSync(archive)).toBe(true)
  expect(await readdir(join(layer, 'upper'))).toEqual(['x'])
  await writeFile(join(layer, 'mark'), '')
  expect(await gather()).toBe(0)
  await unpacked()
  await prepare()
  expect(await readdir(layer)).toContain('mark')
  expect(existsSync(archive)).toBe(false)
  await remove()
})

test('only a node whose directory is gone leaves an orphan', async () => {
  const root = await freshDirectory()
  await symlink('loop', join(root, 'loop'))
  const directories = { there: root, gone: join(root, 'absent'), unreadable: join(root, 'loop/node') }
  for (const [id, directory] of Object.entries(directories)) {
    await mkdir(join(root, 'layers', id), { recursive: true })
    await writeFile(join(root, 'layers', id, 'directory'), directory)
  }
  expect(await new Layers(join(root, 'layers'), () => 0).orphans()).toEqual(['gone'])
})

testWith(containers)('a copy of a node that has written nothing has an archive that says so', async () => {
  const root = await freshDirectory()
  const { gather, prepare, layer, archive, remove } = await nodeIn(root)
  await mkdir(join(root, 'copy'))
  expect(await gather()).toBe(0)
  expect(existsSync(archive)).toBe(false)
  expect(await gather(join(root, 'copy'))).toBe(1024)
  await writeFile(archive, tarOf([...head, { name: 'upper/before', data: 'x' }]))
  await prepare()
  expect(await readdir(join(layer, 'upper'))).toEqual(['before'])
  await writeFile(archive, await readFile(join(root, 'copy/layer.tar')))
  await prepare()
  expect(await readdir(layer)).toEqual([])
  await remove()
})

describeWith(containers)('an archive of a stranger', () => {
  const link = (name: string, to: string): TarEntry => ({ name, type: 'link', link: to })
  const rows: Record<string, readonly TarEntry[]> = {
    'has a name that leads up': [{ name: 'upper/../../../../../../tmp/escaped', data: 'x' }],
    'has an absolute name': [{ name: '/tmp/escaped', data: 'x' }],
    'has a name beside the layer': [{ name: 'work/x', data: 'x' }],
    'has a file in place of the layer': [{ name: 'upper', data: 'x' }],
    'has a link in place of the layer': [link('upper', '/tmp')],
    'goes through a link of its own': [...head, link('upper/out', '/tmp'), { name: 'upper/out/escaped', data: 'x' }],
    'puts a link among the files of the settings': [...head, link(`files/${sum}`, '/etc/passwd')],
    'puts one there through a link': [...head, link('upper/out', '/files'), link(`upper/out/${sum}`, '/etc/passwd')],
    'has other files there': [...head, { name: 'files/x', data: 'x' }],
    'has a device': [...head, { name: 'upper/null', type: 'character', device: [1, 3] }],
    'has a disk': [...head, { name: 'upper/disk', type: 'block', device: [254, 0] }],
    'has a hard link that leads out': [...head, { name: 'upper/x', type: 'hardLink', link: '../etc/passwd' }],
    'has an absolute hard link': [...head, { name: 'upper/x', type: 'hardLink', link: '/etc/passwd' }],
    'has a file twice': [...head, { name: 'upper/x', data: 'x' }, { name: 'upper/x', data: 'y' }],
    'has no directory for its file': [...head, { name: 'upper/a/x', data: 'x' }],
    'deletes what is above': [...head, { name: 'upper/.wh...', data: '' }],
    'has a whiteout with content': [...head, { name: 'upper/.wh.x', data: 'x' }],
    'has an empty name': [{ name: '', data: 'x' }],
  }
  const rest: Record<string, Uint8Array> = {
    'is not an archive': Buffer.alloc(4096, 'x'),
    'breaks off': tarOf([...head, { name: 'upper/x', data: 'x'.repeat(2000) }]).subarray(0, 2560),
    'has no end': tarOf(head)
      .subarray(0, 1024 + 512 * 0 + 2)
      .subarray(0, 1026),
    'has a false sum': Buffer.from(tarOf(head)).fill('7', 100, 107),
    'has a number of another form': Buffer.from(tarOf(head)).fill(0x80, 124, 136),
  }
  const all = { ...Object.fromEntries(Object.entries(rows).map(([name, it]) => [name, tarOf(it)])), ...rest }

  testWith(containers).for(Object.entries(all))('that %s is refused, and the layer stays', async ([, bytes]) => {
    const { archive, layer, prepare, remove } = await nodeIn(await freshDirectory())
    await writeFile(archive, tarOf([...head, { name: 'upper/before', data: 'x' }]))
    await prepare()
    await writeFile(archive, bytes)
    await expect(prepare()).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('cannot be unpacked'),
    })
    expect(await readdir(join(layer, 'upper'))).toEqual(['before'])
    expect(readdirSync(join(layer, '..')).filter((it) => it.startsWith('layer'))).toEqual(['layer'])
    expect(existsSync(archive)).toBe(true)
    expect(readdirSync('/tmp')).not.toContain('escaped')
    await remove()
  })

  testWith(containers)('that is too large for the disk is refused', async () => {
    const root = await freshDirectory()
    const { archive, prepare } = await nodeIn(root)
    await writeFile(archive, tarOf(head))
    await truncate(archive, 1 << 20)
    const full = new Layers(join(root, 'full'), () => 2 ** 40)
    const node = { directory: join(root, 'node'), record: { node_id: randomUUID(), name: 'C1' } as never }
    await expect(full.prepare(requireEngine().ids, node, signal)).rejects.toMatchObject({ status: 507 })
    await prepare()
  })
})
