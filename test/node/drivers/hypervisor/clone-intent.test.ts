import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { CloneRequest, HypervisorDriver, Vm } from '../../../../runtime/node/drivers/hypervisor/driver.ts'
import type { HypervisorSettings } from '../../../../runtime/node/drivers/hypervisor/drivers.ts'
import { HypervisorKind } from '../../../../runtime/node/drivers/hypervisor/hypervisor.ts'
import { Leftovers } from '../../../../runtime/node/drivers/hypervisor/leftovers.ts'
import { LibvirtError } from '../../../../runtime/node/drivers/hypervisor/libvirt/libvirt-error.ts'
import { HypervisorProperties, type VmKindNode } from '../../../../runtime/node/drivers/hypervisor/properties.ts'
import type { DriverHost } from '../../../../runtime/node/drivers/node-driver.ts'
import { parseOrDefault } from '../../../../runtime/node/engine/nodes/record.ts'
import { PortAllocator } from '../../../../runtime/node/engine/ports/allocator.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { freePorts } from '../../../support/ports.ts'

const quiet = () => {}
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet } as never
const id = '00000000-1111-4222-8333-444455556666'

/** A manager with one VM, whose answer to a wish for a clone is the test's. */
async function managed(clone: (wanted: CloneRequest, vms: Map<string, Vm>) => Promise<Vm>) {
  const root = await freshDirectory()
  const vms = new Map<string, Vm>([['base', { uuid: 'base', name: 'base', ram: 64, state: 'stopped' }]])
  const driver = {
    name: 'libvirt',
    adapterTypes: ['e1000'],
    adapterType: () => 'e1000',
    find: async () => vms.get('base'),
    get: async (uuid: string) => vms.get(uuid),
    maxAdapters: async () => 8,
    holds: async () => false,
    clone: (wanted: CloneRequest) => clone(wanted, vms),
    removeClone: async (uuid: string) => void vms.delete(uuid),
    mayHaveSucceeded: (error: unknown) => error instanceof LibvirtError && error.reason === 'timeout',
  } as unknown as HypervisorDriver
  const drivers = { libvirt: driver, virtualbox: driver }
  const leftoversFile = join(root, 'hypervisor-leftovers.json')
  const nodes: VmKindNode[] = []
  const first = freePorts(30)
  const ports = new PortAllocator({
    ranges: { console: [first, first + 9], vnc: [first + 10, first + 19], udp: [first + 20, first + 29] },
    consoleHost: '127.0.0.1',
  })
  const kind = new HypervisorKind({
    ...{ drivers, ports, log, consoleHost: '127.0.0.1', runDirectory: root },
    settings: () => ({ driver: 'libvirt' }),
    nodes: () => nodes,
    listener: {},
  } as unknown as DriverHost<HypervisorProperties, HypervisorSettings>)
  const record = { kind: 'hypervisor', node_id: id, name: 'R1', properties: parseOrDefault(HypervisorProperties) }
  const node = {
    ...{ key: `hypervisor:${id}`, record, projectId: id, projectPath: root, status: 'stopped', siblings: [] },
    directory: join(root, 'project-files/hypervisor', id),
  } as unknown as VmKindNode
  const prepare = () => kind.prepare(node, { name: 'R1', vmname: 'base', linked_clone: true })
  const written = async () => JSON.parse(await readFile(leftoversFile, 'utf8')) as { uuid: string }[]
  /** The service that comes after one that was killed. */
  const next = async () => {
    const useOf = () => 'none' as const
    const leftovers = new Leftovers({ drivers, log, useOf, file: leftoversFile, retryMs: [5, 20], soughtMs: 0 })
    onTestFinished(() => leftovers.close())
    await leftovers.open()
  }
  return { root, vms, kind, node, prepare, written, next }
}
const made = ({ clone_uuid = '', name }: CloneRequest): Vm => ({ uuid: clone_uuid, name, ram: 64, state: 'stopped' })
const late = () => {
  throw new LibvirtError('timeout', 'libvirt did not answer')
}

test('a clone that the hypervisor made or makes after its timeout is removed', async () => {
  let wanted: CloneRequest | undefined
  const { vms, prepare, written } = await managed(async (it) => {
    wanted = it
    // Known before it is asked for.
    expect(await written()).toEqual([expect.objectContaining({ uuid: it.clone_uuid, clone: 'remove' })])
    return late()
  })
  await expect(prepare()).rejects.toThrow('did not answer')
  if (wanted === undefined) throw new Error('no clone was asked for')
  vms.set(wanted.clone_uuid ?? '', made(wanted))
  await expect.poll(() => vms.size).toBe(1)
  await expect.poll(written).toEqual([])
})

test('an unfinished clone of a killed service is removed by the next one, and the clone of a recorded node stays', async () => {
  for (const hasRecord of [false, true]) {
    const { root, vms, prepare, written, next } = await managed(async (wanted, vms) => {
      vms.set(wanted.clone_uuid ?? '', made(wanted))
      return made(wanted)
    })
    await prepare()
    await mkdir(join(root, '.patchbay/nodes'), { recursive: true })
    if (hasRecord) await writeFile(join(root, '.patchbay/nodes', `hypervisor-${id}.json`), '{}')
    expect(await written()).toHaveLength(1)
    await next()
    await expect.poll(written).toEqual([])
    expect(vms.size).toBe(hasRecord ? 2 : 1)
  }
})

test('a clone that was made or refused is not searched for', async () => {
  const { kind, node, prepare, written } = await managed(async (wanted) => made(wanted))
  await prepare()
  await kind.onCreated(node)
  expect(await written()).toEqual([])
  const refused = await managed(async () => {
    throw conflict('there is a VM of that name')
  })
  await expect(refused.prepare()).rejects.toThrow('of that name')
  expect(await refused.written()).toEqual([])
})

test('no clone is made when its intent cannot be saved, and none is searched for', async () => {
  const { root, vms, prepare } = await managed(async (it, all) => {
    all.set(it.clone_uuid ?? '', made(it))
    return made(it)
  })
  // A file where the directory of the records is to be.
  await rename(root, `${root}.away`)
  await writeFile(root, '')
  await expect(prepare()).rejects.toMatchObject({
    status: 409,
    message: expect.stringMatching(/^The clone was not created/),
  })
  await rm(root)
  await rename(`${root}.away`, root)
  expect([...vms.keys()]).toEqual(['base'])
  await prepare()
  expect(vms.size).toBe(2)
})
