import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { requireGcc } from '../../../support/iou.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'
import { LabFeed } from '../qemu/lab-feed.ts'
import { addImage, imageName, type Router, RouterLab, sharedService } from './router-lab.ts'

const gcc = requireGcc()
const service = sharedService()

const startup = 'startup-config.cfg'
const configOf = (router: Router) => readFile(router.file(startup), 'utf8')
const statusOf = async (router: Router) => (await router.view()).status

/** What is only there while the router runs. */
async function leftovers(router: Router): Promise<string[]> {
  const link = (await readdir(router.directory)).filter((name) => name === imageName)
  // The bridge stays as long as the ports that were opened for the start.
  const [socket = '', lock = ''] = await router.sockets()
  return [...link, ...[socket, lock].filter((path) => existsSync(path))]
}

describeWith(gcc)('a router that ends', () => {
  test.for([
    ['crash', 'signal SIGSEGV', 'the image may be damaged'],
    ['crash 11', 'exit code 11', 'the image may be damaged'],
    ['crash 3', 'exit code 3', undefined],
  ] as const)('by %s leaves nothing, and the message has a hint', async ([command, end, hint]) => {
    const lab = await RouterLab.create(service())
    const feed = await LabFeed.open(service(), lab.path)
    const router = await lab.router()
    await router.start()
    const console = await router.console()
    expect(await leftovers(router)).toHaveLength(3)
    console.send(`${command}\n`)
    await feed.until(({ action }) => action === 'log.error')
    const { status, status_reason } = await router.view()
    expect(status).toBe('stopped')
    const [message] = feed.messages('log.error')
    for (const said of [status_reason, message]) {
      expect(said).toContain(end)
      if (hint === undefined) expect(said).not.toContain('image')
      else expect(said).toContain(hint)
    }
    expect(await leftovers(router)).toEqual([])
    await lab.remove()
  })

  test('by a close or a deletion of its project keeps the stored configurations, and leaves nothing else', async () => {
    const lab = await RouterLab.create(service())
    const router = await lab.router({ startup_config_content: 'hostname R1\n' })
    await router.start()
    await router.store('R2')
    // At once: what was written last has not been seen yet.
    await router.stop()
    expect(await configOf(router)).toContain('hostname R2\n')
    expect(await leftovers(router)).toEqual([])
    await router.start()
    await router.store('R3')
    const sockets = await router.sockets()
    await lab.close()
    expect(await configOf(router)).toContain('hostname R3\n')
    expect(sockets.filter((path) => existsSync(path))).toEqual([])
    await lab.open()
    await router.do('start')
    await router.remove()
    expect(sockets.filter((path) => existsSync(path))).toEqual([])
    await lab.remove()
  })

  test('the next start has the changes that a client made meanwhile', async () => {
    const lab = await RouterLab.create(service())
    const router = await lab.router({ startup_config_content: 'hostname R1\n' })
    await router.start()
    await router.console()
    await router.update({ startup_config_content: 'hostname Client\n' })
    await router.stop()
    expect(await configOf(router)).toBe('hostname Client\n')
    await router.start()
    await (await router.console()).run('show version')
    // What the router stores after that counts again.
    await router.store('Router')
    await router.stop()
    expect(await configOf(router)).toContain('hostname Router\n')
    await lab.remove()
  })

  test('a start that fails at its end leaves nothing', async () => {
    const lab = await RouterLab.create(service())
    const router = await lab.router()
    await mkdir(router.file('iou.log'))
    const { status, body } = await router.do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('cannot be started')])
    expect(await leftovers(router)).toEqual([])
    expect(await statusOf(router)).toBe('stopped')
    await lab.remove()
  })

  test('a copy has no symbolic link to the image, and its NVRAM has its own id', async () => {
    const lab = await RouterLab.create(service())
    const [source, copy] = [await lab.router(), await lab.router({ name: 'R2' })]
    await source.start()
    await source.store('R1')
    const { status } = await source.do('duplicate', { destination_node_id: copy.id })
    expect(status).toBe(201)
    expect(await readdir(source.directory)).toContain(imageName)
    const { application_id } = await copy.view()
    const names = await readdir(copy.directory)
    expect(names).not.toContain(imageName)
    expect(names.filter((name) => name.startsWith('nvram_'))).toEqual([`nvram_${`${application_id}`.padStart(5, '0')}`])
    expect(await configOf(copy)).toContain('hostname R2\n')
    await lab.remove()
  })
})

describeWith(gcc)('a router that ends while nobody looks', () => {
  test('is found by the next service, with the stored configurations', async () => {
    const other = await TestService.start()
    const image = await addImage(other)
    const lab = await RouterLab.create(other)
    const [alive, dead, begun] = [await lab.router(), await lab.router(), await lab.router()]
    await Promise.all([alive.start(), dead.start()])
    const consoles = await Promise.all([alive.console(), dead.console()])
    const begunSockets = await begun.sockets()
    await other.kill('SIGKILL')
    for (const [index, console] of consoles.entries()) {
      await console.configure(`hostname New${index}`)
      await console.run('write memory')
    }
    consoles[1]?.send('crash\n')
    await expect(consoles[1]?.expect('not any more')).rejects.toThrow('closed')
    // A start of which the service had written nothing down yet.
    await symlink(image, begun.file(imageName))
    const [socket = '', lock = ''] = begunSockets
    await Promise.all([socket, lock].map((path) => writeFile(path, '')))
    await other.restart()
    expect(await Promise.all([alive, dead].map(statusOf))).toEqual(['started', 'stopped'])
    await expect.poll(() => configOf(alive)).toContain('hostname New0\n')
    expect(await configOf(dead)).toContain('hostname New1\n')
    expect(await Promise.all([dead, begun].map(leftovers))).toEqual([[], []])
    expect((await dead.view()).status_reason).toContain('SIGSEGV')
  })

  test('or whose project is gone is ended, with all its files', async () => {
    const other = await TestService.start()
    await addImage(other)
    const lab = await RouterLab.create(other)
    const router = await lab.router()
    await router.start()
    const sockets = await router.sockets()
    const console = await router.console()
    await other.kill('SIGKILL')
    await rm(join(other.data, 'projects', lab.id), { recursive: true })
    // Its own files it cannot remove.
    console.send('crash SIGSTOP\n')
    await other.restart()
    await expect.poll(() => sockets.filter((path) => existsSync(path))).toEqual([])
    await expect.poll(() => existsSync(join(other.data, 'run', `iou-${router.id}`))).toBe(false)
    const client = await KeeperClient.connect(other.data)
    expect(await client.call('inventory', {})).toEqual({ units: [], ports: [], links: [] })
    client.disconnect()
    // Its id is free again; others of this host may be by now, too.
    const next = await (await RouterLab.create(other)).router()
    expect((await next.view()).application_id).toBeLessThanOrEqual(Number(basename(sockets[0] ?? '')))
  })

  test('with its keeper is reported, and leaves no sockets, also of its bridge', async () => {
    const other = await TestService.start()
    await addImage(other)
    const lab = await RouterLab.create(other)
    const router = await lab.router()
    await router.start()
    await router.store('R2')
    const feed = await LabFeed.open(other, lab.path)
    const client = await KeeperClient.connect(other.data)
    process.kill(client.pid, 'SIGKILL')
    await feed.becomes('stopped')
    expect(await configOf(router)).toContain('hostname R2\n')
    expect((await router.sockets()).filter((path) => existsSync(path))).toEqual([])
    await router.start()
    await router.console()
  })
})

testWith(gcc)('an image of another name may be given later', async () => {
  await addImage(service(), 'later.bin')
  const lab = await RouterLab.create(service())
  const router = await lab.router({ path: 'later.bin' })
  await router.start()
  expect(await readdir(router.directory)).toContain('later.bin')
  // Whatever it is to have next, the link that was made goes.
  await router.update({ path: imageName })
  await router.stop()
  expect((await readdir(router.directory)).filter((name) => name.endsWith('.bin'))).toEqual([])
  await lab.remove()
})
