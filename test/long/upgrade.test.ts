import { existsSync, readdirSync } from 'node:fs'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ideDisk, pcDefinition } from '../node/hypervisor/libvirt-definitions.ts'
import { LibvirtLab, sharedLibvirt } from '../node/hypervisor/libvirt-lab.ts'
import { counting } from '../node/machine-emulator/boot-sectors.ts'
import { booting } from '../node/machine-emulator/machine-lab.ts'
import { qemuName } from '../node/machine-emulator/qemu-process.ts'
import { idling, ring } from '../stand-in/mips/programs.ts'
import { hex } from '../support/dynamips.ts'
import { IouConsole, iourc, requireGcc, standIn } from '../support/iou.ts'
import { attach, createPc, openConsole, reserve, start } from '../support/lab.ts'
import { requireLibvirt } from '../support/libvirt.ts'
import { program010 } from '../support/old-program.ts'
import { readPcap } from '../support/pcap.ts'
import { requireProgram } from '../support/require.ts'
import { bundledProgram, portRanges, TestService } from '../support/service.ts'
import { Terminal } from '../support/terminal.ts'

const has = {
  vpcs: !requireProgram('vpcs').skip,
  iou: !requireGcc().skip,
  dynamips: !requireProgram('dynamips').skip,
  machine: !requireProgram(qemuName).skip,
  libvirt: !requireLibvirt().skip,
}

interface Shown {
  readonly name: string
  readonly status: string
  readonly status_reason: string | null
  readonly console: number
  readonly command_line: string
}

const libvirt = has.libvirt ? sharedLibvirt() : undefined

describe('an upgrade from 0.1.0', () => {
  test('ends no guest: consoles, links and captures go on, and new nodes start beside the old ones', async () => {
    const settings = {
      ...portRanges(115),
      'machine_emulator.acceleration': 'tcg',
      ...(libvirt !== undefined && { 'hypervisor.libvirt_uri': libvirt().uri }),
    }
    const service = await TestService.startProgram(await program010(), { ...settings, 'pc.engine': 'embedded' })
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
    const project = `/v2/compute/projects/${project_id}`
    const create = async (kind: string, input: Record<string, unknown>) => {
      const { node_id } = await service.call<{ node_id: string }>('POST', `${project}/${kind}/nodes`, input)
      return `${project}/${kind}/nodes/${node_id}`
    }
    const linkTo = async (a: string, b: string, adapters = [0, 0]) => {
      const [left, right] = [await reserve(service, project), await reserve(service, project)]
      await attach(service, a, left, right, adapters[0])
      await attach(service, b, right, left, adapters[1])
    }

    // A lab of every kind, which runs.
    const [one, two] = [await createPc(service, project, 1), await createPc(service, project, 2)]
    const stopped = await createPc(service, project, 3)
    await linkTo(one, two)
    const running = [one, two]
    await start(service, one, two)
    if (has.vpcs) {
      await service.configure({ ...settings, 'pc.engine': 'vpcs' })
      await service.call('POST', '/v1/config/reload')
      const vpcs = await createPc(service, project, 4)
      await linkTo(vpcs, stopped)
      await start(service, vpcs)
      await service.configure({ ...settings, 'pc.engine': 'embedded' })
      running.push(vpcs)
    }
    const routers: string[] = []
    if (has.iou) {
      await copyFile(await standIn(), join(service.data, 'images/iou/stand-in.bin'))
      for (const name of ['R1', 'R2'])
        routers.push(await create('iou', { name, path: 'stand-in.bin', iourc_content: iourc() }))
      await linkTo(routers[0] ?? '', routers[1] ?? '')
      await start(service, ...routers)
      running.push(...routers)
    }
    if (has.dynamips) {
      await mkdir(join(service.data, 'images/dynamips'), { recursive: true })
      await writeFile(join(service.data, 'images/dynamips/router.image'), idling)
      const settings = { name: 'D1', platform: 'c7200', image: 'router.image', ram: 64, idlepc: hex(ring[3] ?? 0) }
      const router = await create('dynamips', settings)
      await start(service, router)
      running.push(router)
    }
    const machines: string[] = []
    if (has.machine) {
      const directory = join(service.data, 'images/machine-emulator')
      await mkdir(directory, { recursive: true })
      await writeFile(join(directory, 'counting.img'), Buffer.concat([counting, Buffer.alloc(16 << 20)]))
      const machine = await create('machine-emulator', { name: 'M1', ...booting('counting.img') })
      await start(service, machine)
      machines.push(machine)
      running.push(machine)
    }
    if (libvirt !== undefined) {
      const vm = await LibvirtLab.create(libvirt())
      await libvirt().define(pcDefinition({ ...vm, devices: ideDisk(await vm.disk(counting)) }))
      const node = await create('hypervisor', { name: vm.name, vmname: vm.name })
      await start(service, node)
      machines.push(node)
      running.push(node)
    }
    const shown = () => Promise.all(running.map((node) => service.call<Shown>('GET', node)))
    const before = await shown()

    // Consoles with something to remember, and a capture.
    const console = await openConsole(service, one)
    const port = `${one}/adapters/0/ports/0`
    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, {
      capture_file_name: 'upgrade.pcap',
    })
    console.type('ping 10.0.0.2 -c 1000 -i 20\r')
    await console.expect('icmp_seq=3 ')
    const counters = new Map<string, Terminal>()
    for (const machine of machines) {
      const terminal = await Terminal.connect((await service.call<Shown>('GET', machine)).console)
      await terminal.expect('>', 60_000)
      terminal.type('x')
      await terminal.expect('a')
      counters.set(machine, terminal)
    }

    const oldKeeper = Number((await keepers(service.data))[0])
    await service.kill('SIGKILL')
    service.become(bundledProgram())
    await service.restart()

    // Every guest is as it was, and obeys.
    const after = await shown()
    expect(after.map(summary)).toEqual(before.map(summary))
    const numbers = (text: string) => [...text.matchAll(/icmp_seq=(\d+) /g)].map((match) => Number(match[1]))
    const passed = numbers(await console.expect('icmp_seq=100 ', 20_000))
    expect(passed).toEqual(Array.from({ length: 97 }, (_, index) => index + 4))
    for (const terminal of counters.values()) {
      terminal.type('x')
      await terminal.expect('b')
    }
    const again = await Terminal.connect((after[0] as Shown).console)
    await again.expect('icmp_seq=3 ')
    if (routers[0] !== undefined && routers[1] !== undefined) {
      const shell = await IouConsole.connect((await service.call<Shown>('GET', routers[0])).console)
      await shell.run('enable')
      // The link of the two is up: frames of the stand-in pass.
      await expect
        .poll(async () => (await service.call<{ link: string }>('GET', `${routers[0]}/adapters/0/ports/0/nio`)).link)
        .not.toBe('port_taken')
    }
    const nio = await service.call<{ link: string; capture: { frames: number } | null }>('GET', `${port}/nio`)
    expect(nio).toMatchObject({ link: 'ok' })
    expect(nio.capture?.frames).toBeGreaterThan(100)

    // A new node is in the new keeper, and linked to one of the old one while both run.
    const fresh = await createPc(service, project, 9)
    await linkTo(two, fresh)
    await start(service, fresh)
    expect(await keepers(service.data)).toHaveLength(2)
    const other = await openConsole(service, fresh)
    other.type('ping 10.0.0.2 -c 2\r')
    await other.expect('icmp_seq=2 ttl=64')
    // A stopped node of before starts there, too, with the link that it had.
    await start(service, stopped)
    if (has.vpcs) {
      const third = await openConsole(service, stopped)
      third.type('ping 10.0.0.4 -c 2\r')
      await third.expect('icmp_seq=2 ttl=64')
    }

    // The capture has what passed before and after.
    await service.call('POST', `${port}/stop_capture`)
    expect(readPcap(await readFile(pcap_file_path)).records.length).toBeGreaterThan(200)

    // Another service takes over both keepers.
    await service.kill('SIGKILL')
    await service.restart()
    expect((await shown()).map(summary)).toEqual(before.map(summary))
    expect((await service.call<Shown>('GET', fresh)).status).toBe('started')

    // A node that is stopped starts in the new keeper; with the last one the old keeper ends.
    await service.call('POST', `${two}/stop`)
    await start(service, two)
    other.type('ping 10.0.0.2 -c 1\r')
    await openConsole(service, fresh).then(async (it) => {
      it.type('ping 10.0.0.2 -c 1\r')
      await it.expect('icmp_seq=1 ttl=64')
    })
    for (const node of running) {
      if (node === two) continue
      await service.call('POST', `${node}/stop`)
      expect(await service.call<Shown>('GET', node)).toMatchObject({ status: 'stopped', status_reason: null })
    }
    await expect.poll(() => existsSync(`/proc/${oldKeeper}`), { timeout: 10_000 }).toBe(false)
    expect(existsSync(join(service.data, 'run/keeper.sock'))).toBe(false)
    await service.call('DELETE', one)
    await service.call('DELETE', project)
    expect(readdirSync(join(service.data, 'projects'))).toEqual([])
  }, 300_000)
})

const summary = ({ name, status, status_reason, console, command_line }: Shown) => ({
  ...{ name, status, status_reason, console, command_line },
})

/** Pids of the keepers of a data directory, the oldest first. */
async function keepers(data: string): Promise<string[]> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
      return words.includes(data) && /keeper\.js$/.test(words[1] ?? '') ? [pid] : []
    }),
  )
  return found.flat().sort((a, b) => Number(a) - Number(b))
}
