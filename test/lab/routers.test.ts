import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { IouConsole, iourc, requireGcc, standIn } from '../support/iou.ts'
import { start, status } from '../support/lab.ts'
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
