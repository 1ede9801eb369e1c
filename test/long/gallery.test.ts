import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect } from 'vitest'
import { suggestedFor } from '../../src/importers/known-images.ts'
import { CommandLine } from '../support/command-line.ts'
import { requireContainers } from '../support/container-image.ts'
import { requireProgram, requireThing } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { Terminal } from '../support/terminal.ts'
import { type Requirement, testWith } from '../support/test-with.ts'

/** The packages of Debian that the guests are made of are kept for all runs, as for the documents. */
const guests = resolve('node_modules/.cache/patchbay-documents')

/** Makes the guests and the images of containers. Call it at the top of the file: the first time it downloads. */
async function requireGuests(): Promise<Requirement> {
  const programs = ['apt-get', 'dpkg-deb'].map(requireProgram)
  const absent = programs.find(({ skip }) => skip)
  if (absent !== undefined) return absent
  try {
    await mkdir(guests, { recursive: true })
    await promisify(execFile)('examples/guests/make.sh', [guests])
    return requireThing('guest', undefined)
  } catch (cause) {
    return requireThing('guest', (cause as Error).message)
  }
}

const guestsMade = await requireGuests()
const firstAbsent = (all: readonly Requirement[]) => all.find(({ skip }) => skip) ?? guestsMade
const needs = firstAbsent(['qemu-system-x86_64', 'qemu-img'].map(requireProgram).concat(guestsMade))
const containers = firstAbsent([await requireContainers(), guestsMade])
/** Machines without KVM take their time. */
const timeout = 900_000
let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  const images = [
    ...(needs.skip ? [] : ['vmlinuz', 'busybox.img', 'frr.img', 'frr.qcow2'].map((it) => ['machine-emulator', it])),
    ...(containers.skip ? [] : ['busybox.tar', 'frr.tar', 'iperf3.tar'].map((it) => ['container', it])),
  ]
  for (const [kind, file = ''] of images) {
    const path = join(guests, file)
    const answer = await service.fetch(`/v2/compute/${kind}/images/${file}`, {
      method: 'POST',
      body: createReadStream(path) as unknown as ReadableStream,
      headers: { 'content-length': String((await stat(path)).size) },
      duplex: 'half',
    } as RequestInit)
    expect(answer.ok, await answer.text()).toBe(true)
  }
  return () => service.close()
}, timeout)

const labs: readonly (readonly [name: string, needs: Requirement])[] = [
  ...['nat', 'capture', 'bgp', 'ospf'].map((name) => [name, needs] as const),
  ...['frr-triangle', 'leaf-spine', 'web-server'].map((name) => [name, containers] as const),
]
for (const [name, required] of labs)
  testWith(required)(`the lab ${name} of the gallery starts, and its checks hold`, { timeout }, async () => {
    const patchbay = await CommandLine.of({ server: service.url })
    const tested = patchbay.start(['test', resolve('examples', name, `${name}.lab.yaml`)])
    let printed = ''
    for (const stream of [tested.stdout, tested.stderr]) stream.on('data', (bytes) => (printed += bytes))
    const code = await new Promise((end) => tested.once('close', end))
    expect(code, printed).toBe(0)
  })

/** A machine asks by DHCP, a container has its address from the start. */
const managed = `lab: managed
management: { network: 172.20.20.0/24 }
nodes:
  web: { kind: container, image: busybox.tar, management: { address: 172.20.20.11 }, exec: httpd -h /etc }
  VM:
    kind: machine-emulator
    platform: x86_64
    ram: 128
    adapters: 0
    adapter_type: virtio-net-pci
    kernel_image: vmlinuz
    initrd: busybox.img
    kernel_command_line: console=ttyS0 quiet no_timer_check pb.host=VM pb.eth0=dhcp
    ready: { console: "# ", within: 10m }
    management: { address: 172.20.20.12 }
checks:
  - { on: VM, type: ip -4 address show dev eth0, expect: 'inet 172\\.20\\.20\\.12/24' }
  - { on: VM, type: wget -qO- http://web/hosts, expect: localhost }
  - { on: web, type: ping -c 1 VM, expect: 1 packets received }
`
testWith(firstAbsent([needs, containers]))(
  'a machine and a container reach each other by their names in a management network',
  { timeout },
  async () => {
    const patchbay = await CommandLine.of({ server: service.url })
    await patchbay.file('managed.lab.yaml', managed)
    const { code, out, err } = await patchbay.run(['test'])
    expect(code, out + err).toBe(0)
  },
)

testWith(needs)(
  'the disk that examples/guests makes is known by its name, and boots a router',
  { timeout },
  async () => {
    const { kind, settings } = suggestedFor('machine-emulator', 'frr.qcow2') ?? {}
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'disk' })
    const nodes = `/v2/compute/projects/${project_id}/${kind}/nodes`
    const created = { name: 'R1', platform: 'x86_64', ...settings }
    const { node_id } = await service.call<{ node_id: string }>('POST', nodes, created)
    await service.call('POST', `${nodes}/${node_id}/start`)
    const { console: port } = await service.call<{ console: number }>('GET', `${nodes}/${node_id}`)
    const console = await Terminal.connect(port)
    await console.expect('router# ', timeout)
    console.type('show interface brief\r')
    await console.expect('eth3')
  },
)
