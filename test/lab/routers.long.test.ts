import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { iourc, requireGcc } from '../support/iou.ts'
import { createPc, openConsole, start, status } from '../support/lab.ts'
import { readPcap } from '../support/pcap.ts'
import { RouterLab } from '../support/router-lab.ts'
import { testWith } from '../support/test-with.ts'

// An image cannot be had: a program of our own stands in for it.
const gcc = requireGcc()

testWith(gcc)('a router starts with its configuration, and what it writes to its memory is kept', async () => {
  const { service, router, view, console } = await RouterLab.start()
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
  await expect.poll(file).toContain('hostname R2')
  const stored = await service.call<{ startup_config_content: string }>('GET', `${node}/configs`)
  expect(stored.startup_config_content).toBe(await file())
  await service.call('POST', `${node}/stop`)
  expect(await status(service, node)).toBe('stopped')
  await start(service, node)
  shell = await console(node)
  await shell.expect('R2>')
})

testWith(gcc)('a router that ends by itself is shown stopped, with what it said', async () => {
  const { service, router, view, console } = await RouterLab.start()
  const node = await router('R1')
  await start(service, node)
  const shell = await console(node)
  await shell.expect('>')
  shell.send('crash 3\n')
  await expect.poll(() => status(service, node)).toBe('stopped')
  expect((await view(node)).status_reason).toContain('exit code 3')
  await start(service, node)
  await (await console(node)).expect('>')
})

testWith(gcc)('without a licence a router does not start, and the answer says why', async () => {
  const { service, router } = await RouterLab.start()
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

testWith(gcc)('routers reach each other over ethernet and serial lines, and a pc', async () => {
  const { service, project, router, console, link } = await RouterLab.start()
  const [a, b] = [await router('A'), await router('B')]
  const pc = await createPc(service, project, 1)
  await link([a, 0, 0], [b, 0, 0])
  await link([a, 2, 1], [b, 2, 1])
  await link([a, 0, 1], [pc, 0, 0])
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
  await link([a, 0, 0], [b, 0, 0])
  expect(await left.ping('10.0.1.2', { repeat: 2 })).toBe(2)
  await service.kill('SIGKILL')
  expect(await left.ping('10.0.1.2', { repeat: 2 })).toBe(2)
  await service.restart()
  expect(await status(service, a)).toBe('started')
  await service.call('POST', `${b}/stop`)
  expect(await left.ping('10.0.1.2', { repeat: 1, timeout: 1 })).toBe(0)
})
