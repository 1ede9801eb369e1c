import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { idling, ring } from '../../../stand-in/mips/programs.ts'
import { hex } from '../../../support/dynamips.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireFastPath, requireProgram, requireRoot } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'
import { udpSocketsOf } from '../../../support/udp-sockets.ts'
import { machineService, smallest } from '../../drivers/qemu/machine-lab.ts'
import { qemuName } from '../../drivers/qemu/qemu-process.ts'

type Node = Record<string, unknown> & { readonly node_type: string }

/** A service with two linked nodes that run. */
async function linked(a: Node, b: Node, settings: Record<string, unknown>): Promise<TestService> {
  const service = await TestService.start(machineService({ 'pc.engine': 'embedded', ...settings }))
  const images = join(service.data, 'images/dynamips')
  await mkdir(images, { recursive: true })
  await writeFile(join(images, 'router.image'), idling)
  await service.call('POST', '/v2/projects', { name: 'lab' })
  const ends = []
  for (const [index, input] of [a, b].entries()) {
    const { node_id } = await service.call<{ node_id: string }>('POST', '/v2/projects/lab/nodes', {
      ...{ name: `N${index}`, ...input },
    })
    ends.push({ node_id, adapter_number: 0, port_number: 0 })
  }
  await service.call('POST', '/v2/projects/lab/links', { nodes: ends })
  await service.call('POST', '/v2/projects/lab/nodes/start')
  return service
}

const { platform, ram, adapters: _, console_type, options, process_priority } = smallest
const machine = {
  ...{ node_type: 'machine-emulator', console_type },
  properties: { platform, ram, adapters: 2, options, process_priority },
}
const router = {
  node_type: 'dynamips',
  properties: { platform: 'c7200', image: 'router.image', ram: 64, idlepc: hex(ring[3] ?? 0) },
}
const pc = { node_type: 'pc' }

/** Resolves when the kernel has refused a datagram to the port, as to one that nobody has (udp(7)). */
async function refused(port: number): Promise<void> {
  const stranger = createSocket('udp4')
  onTestFinished(() => void stranger.close())
  await new Promise<void>((resolve) => stranger.connect(port, '127.0.0.1', resolve))
  const error = once(stranger, 'error', { signal: AbortSignal.timeout(hangMs) })
  stranger.send('a frame of a stranger')
  expect((await error)[0]).toMatchObject({ code: 'ECONNREFUSED' })
}

const confined = (by: string) => ({ local: false, sandbox: by, require_sandbox: true })
const needsQemu = [requireProgram(qemuName), requireFastPath()]
const cases = [
  ['a machine', 'qemu', machine, {}, needsQemu],
  [
    'a machine in bubblewrap',
    'qemu',
    machine,
    confined('bubblewrap'),
    [...needsQemu, requireRoot(), requireProgram('bwrap')],
  ],
  [
    'a machine in namespaces',
    'qemu',
    machine,
    confined('namespaces'),
    [...needsQemu, requireRoot(), requireProgram('perl')],
  ],
  ['a router of dynamips', 'dynamips', router, {}, [requireProgram('dynamips')]],
  ['an embedded pc', '', pc, {}, []],
] as const

for (const [what, program, node, settings, needs] of cases) {
  testWith(...needs)(`${what} takes datagrams of the switch only: those of anybody else are refused`, async () => {
    const service = await linked(node, pc, settings)
    const sockets = udpSocketsOf(service.data)
    expect(sockets.filter(({ remotePort }) => remotePort === 0)).toEqual([])
    // Those of the guest, and the ends of the switch.
    expect(sockets.filter((it) => it.program.startsWith(program)).length).toBeGreaterThan(0)
    for (const { port } of sockets) await refused(port)
  })
}
