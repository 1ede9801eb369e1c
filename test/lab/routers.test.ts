import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { IouConsole, iourc, requireGcc, standIn } from '../support/iou.ts'
import { createPc, openConsole, reserve, start, status } from '../support/lab.ts'
import { readPcap } from '../support/pcap.ts'
import { portRanges, TestService } from '../support/service.ts'

// An image cannot be had: a program of our own stands in for it.
const { skip } = requireGcc()

interface Router {
  readonly node_id: string
  readonly console: number
  readonly node_directory: string
  readonly status_reason: string | null
  readonly command_line: string
}

async function labWithImage(file: number) {
  const service = await TestService.start(portRanges(file))
  await copyFile(await standIn(), join(service.data, 'images/iou/stand-in.bin'))
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'iou' })
  const project = `/v2/compute/projects/${project_id}`
  const router = async (name: string, input: Record<string, unknown> = {}) => {
    const wanted = { name, path: 'stand-in.bin', iourc_content: iourc(), ...input }
    const { node_id } = await service.call<Router>('POST', `${project}/iou/nodes`, wanted)
    return `${project}/iou/nodes/${node_id}`
  }
  const view = (node: string) => service.call<Router>('GET', node)
  const console = async (node: string) => IouConsole.connect((await view(node)).console)
  return { service, project, router, view, console }
}

test.skipIf(skip)('a router starts with its configuration, and what it writes to its memory is kept', async () => {
  const { service, router, view, console } = await labWithImage(64)
  const node = await router('R1', { startup_config_content: 'hostname %h\ninterface Ethernet0/0\n no shutdown\n' })
  await start(service, node)
  const { node_directory, command_line } = await view(node)
  expect(command_line).toMatch(/stand-in\.bin \d+$/)
  let shell = await console(node)
  await shell.expect('R1>')
  await shell.run('enable')
  await shell.configure('hostname R2')
  await shell.run('write memory')
  // The file follows while the router runs.
  const file = () => readFile(join(node_directory, 'startup-config.cfg'), 'utf8')
  await expect.poll(file, { timeout: 10_000 }).toContain('hostname R2')
  const stored = await service.call<{ startup_config_content: string }>('GET', `${node}/configs`)
  expect(stored.startup_config_content).toBe(await file())
  await service.call('POST', `${node}/stop`)
  expect(await status(service, node)).toBe('stopped')
  await start(service, node)
  shell = await console(node)
  await shell.expect('R2>')
})

test.skipIf(skip)('a router that ends by itself is shown stopped, with what it said', async () => {
  const { service, router, view, console } = await labWithImage(65)
  const node = await router('R1')
  await start(service, node)
  const shell = await console(node)
  await shell.expect('>')
  shell.send('crash 3\n')
  await expect.poll(() => status(service, node), { timeout: 10_000 }).toBe('stopped')
  expect((await view(node)).status_reason).toContain('exit code 3')
  await start(service, node)
  await (await console(node)).expect('>')
})

test.skipIf(skip)('without a licence a router does not start, and the answer says why', async () => {
  const { service, router } = await labWithImage(67)
  const node = await router('R1', { iourc_content: '[license]\nelsewhere = 0123456789abcdef;\n' })
  const answer = await service.fetch(`${node}/start`, { method: 'POST' })
  expect(answer.status).toBe(409)
  const { message } = (await answer.json()) as { message: string }
  expect(message).toContain('no licence for this host')
  expect(message).not.toContain('0123456789abcdef')
  expect(await status(service, node)).toBe('stopped')
  // One that comes with the start is taken instead.
  await service.call('POST', `${node}/start`, { iourc_content: iourc(), more: 'is ignored' })
  expect(await status(service, node)).toBe('started')
})

test.skipIf(skip)(
  'routers reach each other over ethernet and serial lines, and a pc',
  { timeout: 60_000 },
  async () => {
    const { service, project, router, console } = await labWithImage(68)
    const [a, b] = [await router('A'), await router('B')]
    const pc = await createPc(service, project, 1)
    await link(service, project, [a, 0, 0], [b, 0, 0])
    await link(service, project, [a, 2, 1], [b, 2, 1])
    await link(service, project, [a, 0, 1], [pc, 0, 0])
    await start(service, a, b, pc)
    const [left, right] = [await console(a), await console(b)]
    await left.setAddress('Ethernet0/0', '10.0.1.1')
    await right.setAddress('Ethernet0/0', '10.0.1.2')
    await left.setAddress('Serial2/1', '10.0.2.1')
    await right.setAddress('Serial2/1', '10.0.2.2')
    await left.setAddress('Ethernet0/1', '10.0.0.9')
    expect(await left.ping('10.0.1.2', { repeat: 3 })).toBe(3)
    const serial = `${a}/adapters/2/ports/1`
    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${serial}/start_capture`, {
      capture_file_name: 'serial.pcap',
      data_link_type: 'DLT_C_HDLC',
    })
    expect(await left.ping('10.0.2.2', { repeat: 3 })).toBe(3)
    await service.call('POST', `${serial}/stop_capture`)
    const { linkType, records } = readPcap(await readFile(pcap_file_path))
    expect({ linkType, frames: records.length }).toEqual({ linkType: 104, frames: 6 })
    expect(await left.ping('10.0.0.1', { repeat: 2 })).toBe(2)
    const terminal = await openConsole(service, pc)
    terminal.type('ping 10.0.0.9 -c 1\r')
    await terminal.expect('10.0.0.9 icmp_seq=1')

    // Pulled and put in again while both run.
    await service.call('DELETE', `${a}/adapters/0/ports/0/nio`)
    expect(await left.ping('10.0.1.2', { repeat: 1, timeout: 1 })).toBe(0)
    await link(service, project, [a, 0, 0], [b, 0, 0])
    expect(await left.ping('10.0.1.2', { repeat: 2 })).toBe(2)
    await service.kill('SIGKILL')
    expect(await left.ping('10.0.1.2', { repeat: 2 })).toBe(2)
    await service.restart()
    expect(await status(service, a)).toBe('started')
    await service.call('POST', `${b}/stop`)
    expect(await left.ping('10.0.1.2', { repeat: 1, timeout: 1 })).toBe(0)
  },
)

type End = readonly [node: string, adapter: number, port: number]

/** Links a port of each node. */
async function link(service: TestService, project: string, a: End, b: End): Promise<void> {
  const [left, right] = [await reserve(service, project), await reserve(service, project)]
  for (const [[node, adapter, port], lport, rport] of [
    [a, left, right],
    [b, right, left],
  ] as const) {
    const nio = { type: 'nio_udp', lport, rhost: '127.0.0.1', rport }
    await service.call('POST', `${node}/adapters/${adapter}/ports/${port}/nio`, nio)
  }
}
