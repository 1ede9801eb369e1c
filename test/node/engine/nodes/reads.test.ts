import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createNodeAgent, type NodeAgentService } from '../../../../runtime/node/service/agent.ts'
import { loadConfig } from '../../../../runtime/node/service/config/load.ts'
import type { LocalHostAgent } from '../../../../src/host-agent.ts'
import { type NodeKindName, type NodeRef, nodeKinds } from '../../../../src/model/kinds/node.ts'
import { idling } from '../../../stand-in/mips/programs.ts'
import { watchFileCalls } from '../../../support/file-calls.ts'
import { portArguments } from '../../../support/ports.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'
import { virtualBoxWorld } from '../../../support/virtualbox.ts'

/** What a node of each kind is made of. */
const inputs: Readonly<Record<NodeKindName, object>> = {
  pc: { startup_script: 'ip 10.0.0.1/24\n' },
  iou: { path: 'router.bin', startup_config_content: 'hostname %h\n' },
  hypervisor: { vmname: 'VM 1' },
  'machine-emulator': { platform: 'x86_64' },
  dynamips: { platform: 'c7200', image: 'router.image' },
  container: { image: 'linux.tar' },
  switch: {},
  hub: {},
  cloud: { ports_mapping: [] },
  nat: { subnet: '10.9.0.0/24' },
}

let service: NodeAgentService
let agent: LocalHostAgent
let project_id: string
/** What ends the parts that were begun, in the order of their beginnings. */
const ends: (() => unknown)[] = []

beforeAll(async () => {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-'))
  ends.push(() => rm(data, { recursive: true, force: true }))
  const { world, path } = await virtualBoxWorld(data)
  ends.push(() => world.end())
  world.add('VM 1')
  const config = loadConfig({
    argv: [
      ...['--data', data, '--pc-engine', 'embedded', ...portArguments()],
      ...['--hypervisor-driver=virtualbox', `--hypervisor-vboxmanage-path=${path}`],
    ],
    env: { XDG_CONFIG_HOME: data },
  })
  const quiet = () => {}
  service = await createNodeAgent({
    config,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    diagnose: async () => ({ ok: true, checks: [] }),
  })
  ends.push(() => service.close())
  agent = service.agent
  project_id = (await agent.projects.create({ name: 'lab' })).project.project_id
  // The keeper would hold the switches, which run from their creation on.
  ends.push(() => agent.projects.remove(project_id))
  const elf = Buffer.alloc(64)
  Buffer.from('7f454c46010101', 'hex').copy(elf)
  await agent.images.write('iou', 'router.bin', new Blob([elf]).stream(), { digests: [] })
  await agent.images.write('dynamips', 'router.image', new Blob([Buffer.from(idling)]).stream(), { digests: [] })
  const archive = Buffer.alloc(1024)
  archive.write('ustar', 257)
  await agent.images.write('container', 'linux.tar', new Blob([archive]).stream(), { digests: [] })
})
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

async function made(kind: NodeKindName): Promise<NodeRef> {
  const { node } = await agent.nodes.create(project_id, kind, { name: 'R1', ...inputs[kind] }, { existing: 'refuse' })
  return { project_id, kind, node_id: node.node_id }
}

const qemu = requireProgram('qemu-system-x86_64')
for (const kind of nodeKinds) {
  testWith(kind === 'machine-emulator' && qemu)(`a read of a node of the kind ${kind} touches no file`, async () => {
    const ref = await made(kind)
    const before = await agent.nodes.get(ref)
    const calls = watchFileCalls()
    expect(await agent.nodes.get(ref)).toEqual(before)
    expect(await agent.nodes.list(project_id, kind)).toEqual([before])
    expect(calls()).toEqual([])
  })
}

test('a pc is the same frozen object until it changes', async () => {
  const ref = await made('pc')
  const before = await agent.nodes.get(ref)
  expect(Object.isFrozen(before)).toBe(true)
  expect(await agent.nodes.get(ref)).toBe(before)
  await agent.nodes.update(ref, { name: 'R2' })
  expect(await agent.nodes.get(ref)).toEqual({ ...before, name: 'R2', startup_script: expect.any(String) })
  expect(before.name).toBe('R1')
})

test('changes of a guest or a user in the directory of a pc are shown', async () => {
  const ref = await made('pc')
  const { node_directory, startup_script } = await agent.nodes.get(ref as NodeRef<'pc'>)
  expect(startup_script).toBe('ip 10.0.0.1/24\n')
  const shown = async () => (await agent.nodes.get(ref as NodeRef<'pc'>)).startup_script
  const file = join(node_directory ?? '', 'startup.vpc')
  await writeFile(file, 'ip 10.0.0.2/24\n')
  await expect.poll(shown).toBe('ip 10.0.0.2/24\n')
  await rename(file, `${file}.old`)
  await expect.poll(shown).toBe(null)
})

test('changes of a user in the directory of a router are shown', async () => {
  const ref = (await made('iou')) as NodeRef<'iou'>
  const { node_directory, startup_config } = await agent.nodes.get(ref)
  expect(startup_config).toBe('startup-config.cfg')
  const file = join(node_directory ?? '', 'startup-config.cfg')
  await rename(file, `${file}.old`)
  await expect.poll(async () => (await agent.nodes.get(ref)).startup_config).toBe(null)
  await agent.nodes.update(ref, { startup_config_content: 'hostname R2\n' })
  expect((await agent.nodes.get(ref)).startup_config).toBe('startup-config.cfg')
})
