import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { requireEngine } from '../../../../runtime/node/drivers/container/engine.ts'
import { ImageStore } from '../../../../runtime/node/drivers/container/image-store.ts'
import { requireContainers, writeBusyboxImage } from '../../../support/container-image.ts'
import { testWith } from '../../../support/test-with.ts'

const day = 86_400_000

testWith(await requireContainers())(
  'an image is unpacked once, and removed a day after its last node is gone',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'patchbay-store-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true }))
    const [engine, file, place] = [requireEngine(), join(directory, 'image.tar'), join(directory, 'images')]
    const Healthcheck = { Test: ['CMD', 'test', '-e', '/well'], Timeout: 5e9 }
    await writeBusyboxImage(file, { Healthcheck, Env: ['COLOUR=red'], User: 'user', WorkingDir: '/tmp' })
    const store = new ImageStore(place, () => 1)
    const { signal } = new AbortController()
    const [one, other] = await Promise.all([1, 2].map(() => store.unpacked(engine, file, 'sum', signal)))
    expect(one).toEqual(other)
    expect(one?.run).toMatchObject({ user: { uid: 1000, gid: 1000 }, cwd: '/tmp', args: ['/bin/sh'] })
    expect(one?.run.env).toContain('COLOUR=red')
    expect(await store.healthCheckOf('sum')).toEqual({ words: ['test', '-e', '/well'], ms: 5000 })
    expect(await readdir(place)).toEqual(['sum'])
    await store.tidy(engine, new Set(['sum']), Date.now() + 2 * day)
    await store.tidy(engine, new Set())
    expect(await readdir(place)).toEqual(['sum'])
    await store.tidy(engine, new Set(), Date.now() + 2 * day)
    expect(await readdir(place)).toEqual([])
  },
)
