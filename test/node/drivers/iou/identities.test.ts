import { randomUUID } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { IouKind, type IouSettings } from '../../../../runtime/node/drivers/iou/iou.ts'
import { maxApplicationId } from '../../../../runtime/node/drivers/iou/netmap.ts'
import { type IouKindNode, IouProperties } from '../../../../runtime/node/drivers/iou/properties.ts'
import type { DriverHost } from '../../../../runtime/node/drivers/node-driver.ts'
import { parseOrDefault } from '../../../../runtime/node/engine/nodes/record.ts'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { iourc, requireGcc } from '../../../support/iou.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith } from '../../../support/test-with.ts'
import { addImage, type Router, RouterLab } from './router-lab.ts'

const gcc = requireGcc()
// Projects are opened in the order of their names.
const first = '00000000-0000-4000-8000-000000000001'
const last = 'ffffffff-0000-4000-8000-000000000001'

const idOf = async (router: Router) => (await router.view()).application_id
const nvramsOf = async (router: Router) =>
  (await readdir(router.directory)).filter((name) => name.startsWith('nvram_')).sort()
const nvram = (id: number) => `nvram_${`${id}`.padStart(5, '0')}`

describeWith(gcc)('the application id of a saved router', () => {
  test('stays with the running router, whichever project is opened first, and the files of the other move to its new id', async () => {
    const service = await TestService.start()
    await addImage(service)
    const saved = await RouterLab.create(service, first)
    const old = await saved.router()
    await old.start()
    await old.store('R2')
    const before = await idOf(old)
    await saved.close()
    const lab = await RouterLab.create(service, last)
    const running = await lab.router()
    await running.start()
    const id = await idOf(running)
    const console = await running.console()
    await service.kill('SIGKILL')
    // As if the saved one had been open, too.
    const file = join(service.data, 'projects', saved.id, '.patchbay/project.json')
    await writeFile(file, (await readFile(file, 'utf8')).replace('"open":false', '"open":true'))
    // It had the id that the other one has now, which it often gets by itself.
    const record = join(service.data, 'projects', saved.id, `.patchbay/nodes/iou-${old.id}.json`)
    const text = await readFile(record, 'utf8')
    await writeFile(record, text.replace(`"application_id":${before}`, `"application_id":${id}`))
    await rename(join(old.directory, nvram(before)), join(old.directory, nvram(id)))
    await service.restart()
    expect(await idOf(running)).toBe(id)
    expect(await idOf(old)).not.toBe(id)
    expect(await console.run('show version')).toContain(`Application id ${id},`)
    const client = await KeeperClient.connect(service.data)
    const { ports } = await client.call('inventory', {})
    client.disconnect()
    expect(new Set(ports.map(({ key, netio }) => `${key.split('/')[0]} ${netio?.application_id}`))).toEqual(
      new Set([`iou:${running.id} ${id}`]),
    )
    expect(await nvramsOf(old)).toEqual([nvram(id)])
    expect((await old.do('start', { iourc_content: iourc() })).status).toBe(200)
    // Until it starts, a router of another service may take the id that it was to have.
    const other = await idOf(old)
    expect(other).not.toBe(id)
    expect(await nvramsOf(old)).toEqual([nvram(other)])
    expect(await readFile(old.file('NETMAP'), 'utf8')).toContain(`${other + 512}:0/0`)
  })
})

test('a router without an id after its opening gets one when it needs it', async () => {
  const host = {
    runDirectory: await freshDirectory(),
    keeper: { tidyNetio: async () => {} },
    listener: { changed() {}, updated() {}, happened() {}, queued() {} },
  }
  const kind = new IouKind(host as unknown as DriverHost<IouProperties, IouSettings>, () => false)
  const newNode = (properties = {}): IouKindNode => {
    const record = { node_id: randomUUID(), properties: parseOrDefault(IouProperties, properties) }
    return { key: `iou:${record.node_id}`, record } as unknown as IouKindNode
  }
  const others = Array.from({ length: maxApplicationId }, () => {
    const node = newNode()
    kind.onNew(node)
    return node
  })
  const node = newNode({ application_id: 7 })
  expect(() => kind.onNew(node)).toThrow(expect.objectContaining({ status: 409 }))
  kind.onOpened(node)
  const port = { adapter: 0, port: 0 }
  expect(() => kind.wiring.netioOf?.(node, port)).toThrow(expect.objectContaining({ status: 409 }))
  await kind.cleanup.dispose?.(others[99] as IouKindNode)
  expect(kind.wiring.netioOf?.(node, port).application_id).toBe(100)
  expect(node.record.properties.application_id).toBe(100)
})
