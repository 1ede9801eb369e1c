import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshDirectory } from '../../../support/directory.ts'
import { requireGcc } from '../../../support/iou.ts'
import { describeWith } from '../../../support/test-with.ts'
import { imageName, RouterLab, sharedService } from './router-lab.ts'

const gcc = requireGcc()
const service = sharedService()

const fifo = (path: string) => void execFileSync('mkfifo', [path])

describeWith(gcc)('what is in the directory of a router', () => {
  test.for([
    ['iou.log', fifo, 409],
    ['NETMAP', fifo, 200],
    ['NETMAP', (path: string) => mkdir(path), 409],
    ['nvram_00000', fifo, 409],
    ['nvram_00000', (path: string) => mkdir(path), 409],
    ['startup-config.cfg', fifo, 409],
    ['iourc', (path: string) => mkdir(path), 409],
    [imageName, fifo, 200],
  ] as const)('%s may be another type of file: a start is answered at once', async ([name, plant, status]) => {
    const lab = await RouterLab.create(service())
    const router = await lab.router()
    const applicationId = async () => (await router.view()).application_id
    const started = async (id: unknown): Promise<Awaited<ReturnType<typeof router.do>>> => {
      const path = router.file(name.replace('00000', `${id}`.padStart(5, '0')))
      await rm(path, { force: true, recursive: true })
      await plant(path)
      const answer = await router.do('start')
      const now = await applicationId()
      if (now === id) return answer
      // A router of another test had the id, so this one got another, and another file.
      await router.stop()
      return started(now)
    }
    const answer = await started(await applicationId())
    expect([answer.status, answer.body.message]).toEqual([status, status === 200 ? undefined : expect.any(String)])
    await expect(router.do('stop')).resolves.toMatchObject({ status: 204 })
    await lab.remove()
  })

  test('nothing is written or read through a link', async () => {
    const lab = await RouterLab.create(service())
    const elsewhere = await freshDirectory()
    const names = ['NETMAP', 'iou.log', 'startup-config.cfg']
    for (const name of names) {
      const router = await lab.router()
      const there = join(elsewhere, name)
      await writeFile(there, 'mine')
      await rm(router.file(name), { force: true })
      await symlink(there, router.file(name))
      await router.do('start')
      const { body } = await router.do('configs/save')
      expect(JSON.stringify([body, await router.view()])).not.toContain('mine')
      const configs = await service().fetch(`${router.path}/configs`)
      expect(await configs.text()).not.toContain('mine')
      await router.stop()
      expect(await readFile(there, 'utf8')).toBe('mine')
    }
    await lab.remove()
  })

  test('a file of a client with the name of the image stays, and the router still runs', async () => {
    const lab = await RouterLab.create(service())
    const router = await lab.router()
    await writeFile(router.file(imageName), 'mine')
    await router.start()
    expect((await router.view()).command_line).toContain(`image-1-${imageName} `)
    await router.stop()
    expect(await readFile(router.file(imageName), 'utf8')).toBe('mine')
    expect(await readdir(router.directory)).not.toContain(`image-1-${imageName}`)
    await lab.remove()
  })

  test('the image may be there itself', async () => {
    const lab = await RouterLab.create(service())
    const router = await lab.router()
    const own = router.file('own.bin')
    execFileSync('cp', [join(service().data, 'images/iou', imageName), own])
    await router.update({ path: 'own.bin' })
    await router.start()
    expect((await router.view()).command_line).toBe(`${own} ${(await router.view()).application_id}`)
    await router.stop()
    expect((await stat(own)).size).toBeGreaterThan(10_000)
    await lab.remove()
  })

  test('an update that cannot be written changes nothing', async () => {
    const lab = await RouterLab.create(service())
    const router = await lab.router({ startup_config_content: 'hostname old\n' })
    await rm(router.file('private-config.cfg'))
    await mkdir(router.file('private-config.cfg'))
    const changes = {
      name: 'R2',
      usage: 'other',
      startup_config_content: 'hostname new\n',
      private_config_content: 'x\n',
    }
    const body = JSON.stringify(changes)
    expect((await service().fetch(router.path, { method: 'PUT', body })).status).toBe(409)
    expect(await readFile(router.file('startup-config.cfg'), 'utf8')).toBe('hostname old\n')
    expect(await router.view()).toMatchObject({ name: 'R1', usage: '' })
    expect((await readdir(router.directory)).sort()).toEqual(['private-config.cfg', 'startup-config.cfg'])
    await lab.remove()
  })
})
