import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { recordVersion } from '../../runtime/node/engine/storage/newer-record.ts'
import { protocolVersion } from '../../runtime/node/keeper/protocol/protocol.ts'
import { ideDisk, pcDefinition } from '../node/drivers/hypervisor/libvirt-definitions.ts'
import { LibvirtLab, sharedLibvirt } from '../node/drivers/hypervisor/libvirt-lab.ts'
import { counting } from '../node/drivers/qemu/boot-sectors.ts'
import { booting } from '../node/drivers/qemu/machine-lab.ts'
import { qemuName } from '../node/drivers/qemu/qemu-process.ts'
import { idling, ring } from '../stand-in/mips/programs.ts'
import { hex } from '../support/dynamips.ts'
import { IouConsole, iourc, requireGcc, standIn } from '../support/iou.ts'
import { attach, createLab, createPc, openConsole, reserve, start, startPcs } from '../support/lab.ts'
import { requireLibvirt } from '../support/libvirt.ts'
import { nextProgram, program010 } from '../support/old-program.ts'
import { readPcap } from '../support/pcap.ts'
import { requireProgram } from '../support/require.ts'
import { bundledProgram, TestService } from '../support/service.ts'
import { Terminal } from '../support/terminal.ts'
import { udpSocketsOf } from '../support/udp-sockets.ts'

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
  test.each([
    { by: 'kill -9', signal: 'SIGKILL', on_exit: 'stop' },
    { by: 'a polite end with on_exit = keep', signal: 'SIGTERM', on_exit: 'keep' },
  ] as const)(
    'by $by leaves guests running: consoles, links and captures go on, and new nodes start beside the old ones',
    async ({ signal, on_exit }) => {
      const settings = {
        on_exit,
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

      const shellOf = async (router: string) => {
        const shell = await IouConsole.connect((await service.call<Shown>('GET', router)).console)
        await shell.run('enable')
        return shell
      }
      const configure = async (router: string, address: string) => {
        await (await shellOf(router)).setAddress('Ethernet0/0', address)
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
        for (const [index, router] of routers.entries()) await configure(router, `10.0.9.${index + 1}`)
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
        const machine = await create('machine-emulator', { name: 'M1', ...booting('counting.img'), adapters: 1 })
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
        await terminal.expect('>')
        terminal.type('x')
        await terminal.expect('a')
        counters.set(machine, terminal)
      }

      const oldKeeper = Number((await keepers(service.data))[0])
      await service.kill(signal)
      service.become(bundledProgram())
      await service.restart()

      // Every guest is as it was, and obeys.
      const after = await shown()
      expect(after.map(summary)).toEqual(before.map(summary))
      const numbers = (text: string) => [...text.matchAll(/icmp_seq=(\d+) /g)].map((match) => Number(match[1]))
      const passed = numbers(await console.expect('icmp_seq=100 '))
      expect(passed).toEqual(Array.from({ length: 97 }, (_, index) => index + 4))
      for (const terminal of counters.values()) {
        terminal.type('x')
        await terminal.expect('b')
      }
      const again = await Terminal.connect((after[0] as Shown).console)
      await again.expect('icmp_seq=3 ')
      const [left, right] = routers
      if (left !== undefined && right !== undefined) {
        expect(await (await shellOf(left)).ping('10.0.9.2', { repeat: 2 })).toBe(2)
        // One of them moves to the new keeper, and the link is between both.
        await service.call('POST', `${right}/stop`)
        await start(service, right)
        await configure(right, '10.0.9.2')
        expect(await (await shellOf(left)).ping('10.0.9.2', { repeat: 2 })).toBe(2)
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
      // A machine keeps the sockets that its emulator opened, with which its link works, until it is stopped.
      for (const machine of has.machine ? machines.slice(0, 1) : []) {
        await linkTo(machine, fresh)
        expect((await service.call<Shown>('GET', machine)).command_line).toContain(',local.type=inet,')
        await service.call('POST', `${machine}/stop`)
        await start(service, machine)
        expect((await service.call<Shown>('GET', machine)).command_line).toContain(',local.type=fd,')
        expect(udpSocketsOf(service.data).filter(({ program }) => program.startsWith('qemu'))).toMatchObject([
          { remotePort: expect.toSatisfy((port: number) => port > 0) },
        ])
      }
      for (const node of running) {
        if (node === two) continue
        await service.call('POST', `${node}/stop`)
        expect(await service.call<Shown>('GET', node)).toMatchObject({ status: 'stopped', status_reason: null })
      }
      await expect.poll(() => existsSync(`/proc/${oldKeeper}`)).toBe(false)
      expect(existsSync(join(service.data, 'run/keeper.sock'))).toBe(false)
      await service.call('DELETE', one)
      await service.call('DELETE', project)
      expect(readdirSync(join(service.data, 'projects'))).toEqual([])
    },
    300_000,
  )
})

/** Two embedded pcs on one link in 0.1.0, of which the first runs; the pid of its keeper. */
async function smallLab() {
  const settings = { 'pc.engine': 'embedded' }
  const service = await TestService.startProgram(await program010(), settings)
  const lab = await createLab(service)
  await start(service, lab.pc1)
  const [keeper = ''] = await keepers(service.data)
  const before = await service.call<Shown>('GET', lab.pc1)
  return { service, lab, before, keeper: Number(keeper) }
}

test('nodes of the keeper from before an upgrade are unknown while it hangs, and reconciled when it answers', async () => {
  const { service, lab, before, keeper } = await smallLab()
  process.kill(keeper, 'SIGSTOP')
  onTestFinished(() => {
    if (existsSync(`/proc/${keeper}`)) process.kill(keeper, 'SIGCONT')
  })
  await service.kill('SIGKILL')
  service.become(bundledProgram())
  await service.restart()
  const reason = expect.stringContaining('last known status')
  expect(await service.call<Shown>('GET', lab.pc1)).toMatchObject({ ...summary(before), status_reason: reason })
  for (const path of [lab.pc1, lab.pc2, lab.project])
    expect((await service.fetch(path, { method: 'DELETE' })).status).toBe(503)
  // A node that is new is none of that keeper's.
  const fresh = await createPc(service, lab.project, 7)
  await start(service, fresh)
  process.kill(keeper, 'SIGCONT')
  await expect.poll(async () => summary(await service.call<Shown>('GET', lab.pc1))).toEqual(summary(before))
  expect((await service.call<Shown>('GET', fresh)).status).toBe('started')
  await start(service, lab.pc2)
  const console = await openConsole(service, lab.pc1)
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
  await service.call('DELETE', lab.project)
  await expect.poll(() => existsSync(`/proc/${keeper}`)).toBe(false)
})

test('when the keeper from before an upgrade is killed, its nodes are reported as stopped, and start in the new one', async () => {
  const { service, lab, keeper } = await smallLab()
  await service.kill('SIGKILL')
  service.become(bundledProgram())
  await service.restart()
  const fresh = await createPc(service, lab.project, 7)
  await start(service, fresh)
  process.kill(keeper, 'SIGKILL')
  await expect
    .poll(() => service.call<Shown>('GET', lab.pc1))
    .toMatchObject({ status: 'stopped', status_reason: expect.stringContaining('died') })
  expect((await service.call<Shown>('GET', fresh)).status).toBe('started')
  const console = await startPcs(service, lab)
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
  expect(existsSync(join(service.data, 'run/keeper.sock'))).toBe(false)
})

test('files of the program that are replaced under a running service are not mixed with it', async () => {
  const [present, next] = [dirname(bundledProgram()), dirname(await nextProgram(protocolVersion, recordVersion))]
  const place = join(dirname(next), `replaced-${process.pid}`)
  onTestFinished(() => rm(place, { recursive: true, force: true }))
  await cp(present, place, { recursive: true })
  const settings = { 'pc.engine': 'embedded' }
  const service = await TestService.startProgram(join(place, 'patchbay.js'), settings)
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const pc = await createPc(service, `/v2/compute/projects/${project_id}`, 1)
  await expect.poll(() => keepers(service.data)).toHaveLength(1)
  // It answers, so it has started.
  await service.call('GET', '/v2/compute/capabilities')
  const [keeper = ''] = await keepers(service.data)
  await rm(place, { recursive: true })
  await cp(next, place, { recursive: true })
  const start = async () => {
    const answer = await service.fetch(`${pc}/start`, { method: 'POST' })
    return [answer.status, await answer.text()]
  }
  const refused = [409, expect.stringContaining('the files of the program were replaced')]
  expect(await start()).toEqual(refused)
  // Neither is a keeper.
  process.kill(Number(keeper), 'SIGKILL')
  await expect.poll(start).toEqual(refused)
  await service.kill('SIGKILL')
  await service.restart()
  expect(await start()).toEqual([200, expect.stringContaining('started')])
})

describe('a downgrade', () => {
  test('loses nothing: nodes and records of a newer version are shown as such, and work after the next upgrade', async () => {
    const settings = { 'pc.engine': 'embedded', 'machine_emulator.acceleration': 'tcg' }
    const [present, next] = [bundledProgram(), await nextProgram(protocolVersion, recordVersion)]
    const service = await TestService.startProgram(present, settings)
    const newProject = async () => {
      const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
      return `/v2/compute/projects/${project_id}`
    }
    const project = await newProject()
    const [kept, early] = [await createPc(service, project, 1), await createPc(service, project, 2)]
    await start(service, kept)

    // The newer version takes over what runs, and has nodes and projects of its own.
    await service.kill('SIGKILL')
    service.become(next)
    await service.restart()
    const udp = (await service.call<{ udp_port_range: [number, number] }>('GET', '/v2/compute/network/ports'))
      .udp_port_range[1]
    const late = await createPc(service, project, 3)
    await attach(service, early, udp, udp - 1)
    await attach(service, late, udp - 1, udp)
    await start(service, early, late)
    // It speaks only the core of the protocol with the keeper of before.
    const nio = { type: 'nio_udp', lport: udp - 2, rhost: '127.0.0.1', rport: udp - 3 }
    const refused = await service.fetch(`${kept}/adapters/0/ports/0/nio`, { method: 'POST', body: JSON.stringify(nio) })
    expect([refused.status, await refused.text()]).toEqual([
      409,
      expect.stringContaining('stop the node and start it again'),
    ])
    await (await Terminal.connect((await service.call<Shown>('GET', kept)).console)).expect(/PC\d> /)
    const theirs = await newProject()
    const hidden = await createPc(service, theirs, 4)
    await start(service, hidden)
    const capture = `${late}/adapters/0/ports/0`
    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${capture}/start_capture`, {
      capture_file_name: 'downgrade.pcap',
    })
    const console = await openConsole(service, early)
    console.type('ping 10.0.0.3 -c 2000 -i 20\r')
    await console.expect('icmp_seq=3 ')
    const view = async (node: string) => summary(await service.call<Shown>('GET', node))
    const before = await Promise.all([kept, early, late, hidden].map(view))
    const files = () => contents(join(service.data, 'projects'))
    const pids = await keepers(service.data)
    expect(pids).toHaveLength(2)

    await service.kill('SIGKILL')
    service.become(present)
    const written = files()
    await service.restart()
    const newer = expect.stringContaining('written by a newer version')
    expect(await view(kept)).toEqual(before[0])
    for (const [index, node] of [early, late].entries()) {
      const { name, console, status } = before[index + 1] as Shown
      expect(await view(node)).toMatchObject({ name, console, status, status_reason: newer })
    }
    for (const [method, path] of [
      ['DELETE', early],
      ['POST', `${late}/start`],
      ['DELETE', `${late}/adapters/0/ports/0/nio`],
      ['PUT', early],
      ['DELETE', project],
      ['DELETE', theirs],
      ['GET', hidden],
    ] as const) {
      const answer = await service.fetch(path, { method, ...(method === 'PUT' && { body: '{"name":"x"}' }) })
      expect([answer.status, ((await answer.json()) as { message: string }).message], path).toEqual([409, newer])
    }
    const { checks } = await service.call<{ checks: { name: string; status: string }[] }>('GET', '/v2/compute/doctor')
    expect(checks.find(({ name }) => name === 'keeper')).toMatchObject({ status: 'warning' })
    // Guests, links and consoles go on; one that is told to stop does, and new nodes start beside them.
    const numbers = (text: string) => [...text.matchAll(/icmp_seq=(\d+) /g)].map((match) => Number(match[1]))
    expect(numbers(await console.expect('icmp_seq=200 '))).toHaveLength(197)
    await (await Terminal.connect((before[1] as Shown).console)).expect('icmp_seq=')
    const ours = await createPc(service, project, 5)
    await start(service, ours)
    await service.call('POST', `${late}/stop`)
    expect((await view(late)).status).toBe('stopped')
    expect(readPcap(await readFile(pcap_file_path)).records.length).toBeGreaterThan(200)
    const lost = [...written].filter(([name, text]) => !name.endsWith('.pcap') && files().get(name) !== text)
    expect(lost.map(([name]) => name)).toEqual([])
    expect(await keepers(service.data)).toEqual(pids)

    await service.kill('SIGKILL')
    service.become(next)
    await service.restart()
    expect(await Promise.all([kept, early, hidden].map(view))).toEqual([before[0], before[1], before[3]])
    expect(await view(late)).toMatchObject({ status: 'stopped' })
    expect((await view(ours)).status).toBe('started')
    await start(service, late)
    await openConsole(service, late).then(async (it) => {
      it.type('ping 10.0.0.2 -c 1\r')
      await it.expect('icmp_seq=1 ttl=64')
    })
    await service.call('POST', `${kept}/stop`)
    await start(service, kept)
    await service.call('POST', `${kept}/adapters/0/ports/0/nio`, nio)
    await service.call('DELETE', project)
    await service.call('DELETE', theirs)
    await expect.poll(() => keepers(service.data)).toHaveLength(1)
    expect(readdirSync(join(service.data, 'projects'))).toEqual([])
  })
})

/** The files below a directory by their paths. */
function contents(directory: string): Map<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((it) => it.isFile())
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name))
  return new Map(paths.map((path) => [path, readFileSync(path, 'latin1')]))
}

const summary = ({ name, status, status_reason, console, command_line }: Shown) => ({
  name,
  status,
  status_reason,
  console,
  command_line,
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
