import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshDirectory } from '../../../support/directory.ts'
import { iourc, requireGcc } from '../../../support/iou.ts'
import { processesWith } from '../../../support/processes.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith } from '../../../support/test-with.ts'
import { LabFeed } from '../qemu/lab-feed.ts'
import { addImage, type Router, RouterLab } from './router-lab.ts'

const gcc = requireGcc()
const key = 'fedcba9876543210'

const placeOf = (router: Router) => join(router.lab.service.data, 'run', `iou-${router.id}`)
const mode = async (path: string) => (await stat(path)).mode & 0o777

async function labOfOne(settings: Record<string, unknown> = {}) {
  const service = await TestService.start()
  await addImage(service)
  const lab = await RouterLab.create(service)
  return { service, lab, router: await lab.router(settings) }
}

describeWith(gcc)('the licence file of a router', () => {
  test('only the service can read it; it is stored over a restart, and deleted with the node or its project', async () => {
    const { service, lab, router } = await labOfOne()
    const other = await lab.router()
    expect([await mode(placeOf(router)), await mode(join(placeOf(router), 'iourc'))]).toEqual([0o700, 0o600])
    const forgotten = join(service.data, 'run/iou-00000000-0000-4000-8000-000000000000')
    await mkdir(forgotten)
    await service.end()
    await service.restart()
    await router.start()
    await expect.poll(() => existsSync(forgotten)).toBe(false)
    await router.remove()
    expect([router, other].map((it) => existsSync(placeOf(it)))).toEqual([false, true])
    await lab.close()
    expect(existsSync(placeOf(other))).toBe(false)
    await lab.open()
    const { status, body } = await other.do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('There is no licence file')])
    expect((await other.do('start', { iourc_content: iourc() })).status).toBe(200)
    await lab.remove()
    expect(existsSync(placeOf(other))).toBe(false)
  })

  test('is in no other file, whether a router starts with it or is refused', async () => {
    const { service, lab, router } = await labOfOne({ iourc_content: iourc(hostname(), key) })
    const feed = await LabFeed.open(service, lab.path)
    await router.start()
    const console = await router.console()
    console.send('crash\n')
    // A start that takes another application id says so in an update while the router is still stopped.
    await feed.until(({ action }) => action === 'log.error')
    const answers = []
    for (const iourc_content of [iourc('elsewhere', key), `[license]\n${hostname()} = ${key}`, key, [key], { key }]) {
      answers.push(await router.do('start', { iourc_content }))
    }
    expect(answers.map(({ status }) => status)).toEqual([409, 409, 409, 400, 400])
    expect(JSON.stringify([answers, feed.seen, await router.view()])).not.toContain(key)
    // A file that goes while it looks is no match, but an error for grep.
    const { stdout } = spawnSync('grep', ['-rls', key, service.data], { encoding: 'utf8' })
    expect(stdout.trim()).toBe(join(placeOf(router), 'iourc'))
  })

  test('is not checked when a start says so, nor at a reload after it; at the next start it is', async () => {
    // The program itself is content with the first line.
    const { service, router } = await labOfOne({ iourc_content: `${iourc()}${hostname()} = ${key.slice(1)};\n` })
    expect((await router.do('start')).status).toBe(409)
    expect((await router.do('start', { license_check: false })).status).toBe(200)
    expect((await router.do('start')).status).toBe(200)
    await service.kill('SIGKILL')
    await service.restart()
    expect((await router.do('reload')).status).toBe(204)
    await router.stop()
    const { status, body } = await router.do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('more than one licence')])
  })

  test('from the environment of the service is used', async () => {
    const given = join(await freshDirectory(), 'given')
    await writeFile(given, iourc())
    const service = await TestService.start({}, ['env', `IOURC=${given}`])
    await addImage(service)
    const lab = await RouterLab.create(service)
    const router = await lab.router({ iourc_content: 'of no use' })
    await router.start()
    // One that is about to become the router has no environment for a moment.
    const environment = async () => {
      const [{ pid } = { pid: 0 }] = processesWith(router.directory)
      return readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
    }
    await expect.poll(environment).toContain(`IOURC=${given}\0`)
  })
})
