import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { HostProjectFiles } from '../../../../runtime/node/service/labs/host-projects.ts'
import type { LabNode } from '../../../../src/model/lab/node.ts'
import type { LabProject } from '../../../../src/model/lab/project.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { TestService } from '../../../support/service.ts'

const project_id = '11111111-2222-4333-8444-555555555555'
const [one, two] = ['21111111-2222-4333-8444-555555555555', '31111111-2222-4333-8444-555555555555']

/** A project of release 2.2 in a directory with other things; the path of its document. */
async function campus(directory: string): Promise<string> {
  const node = (node_id: string, name: string) => ({
    ...{ node_id, name, node_type: 'vpcs', compute_id: 'local', console_type: 'telnet', x: 5, y: 6 },
    properties: {},
  })
  const end = (node_id: string) => ({ node_id, adapter_number: 0, port_number: 0 })
  const document = {
    ...{ name: 'Campus', project_id, revision: 9, type: 'topology', version: '2.2.59', zoom: 70 },
    topology: {
      ...{ computes: [], drawings: [] },
      nodes: [node(one, 'PC1'), node(two, 'PC2')],
      links: [{ link_id: '41111111-2222-4333-8444-555555555555', nodes: [end(one), end(two)] }],
    },
  }
  const files = {
    'campus.gns3': JSON.stringify(document),
    [`project-files/vpcs/${one}/startup.vpc`]: 'ip 10.0.0.1/24\n',
    [`project-files/vpcs/${one}/vpcs.log`]: 'a log',
    'project-files/captures/a.pcap': 'a capture',
    'private.txt': 'of somebody',
  }
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), content)
  }
  await symlink('/etc/hostname', join(directory, 'project-files/link'))
  return join(directory, 'campus.gns3')
}

describe('the directory of a project', () => {
  it('has the document and the files of the project, and no others', async () => {
    const path = await campus(await freshDirectory())
    await using archive = await new HostProjectFiles({ directory: '/none', isLocal: () => true }).open(path)
    expect([...archive.members.keys()]).toEqual(['project.gns3', `project-files/vpcs/${one}/startup.vpc`])
    for (let time = 0; time < 2; time++)
      expect(await new Response(await archive.read('project.gns3')).json()).toMatchObject({ name: 'Campus' })
  })

  it('is refused outside local mode unless it is in the directory of projects, also by links', async () => {
    const [directory, elsewhere] = [await freshDirectory(), await freshDirectory()]
    const files = new HostProjectFiles({ directory, isLocal: () => false })
    const outside = await campus(elsewhere)
    await symlink(outside, join(directory, 'link.gns3'))
    const refused = { status: 403, message: expect.stringContaining(`only a project inside ${directory}`) }
    for (const path of [outside, join(directory, 'link.gns3'), `${directory}/../none.gns3`])
      await expect(files.open(path), path).rejects.toMatchObject(refused)
    await mkdir(join(directory, 'there'))
    const inside = await files.open(await campus(join(directory, 'there')))
    expect(inside.members.size).toBe(2)
  })

  it.for([
    ['lab.gns3', 400, 'expected an absolute path, got "lab.gns3"'],
    ['/etc/passwd', 400, 'expected a GNS3 project (*.gns3), got "/etc/passwd"'],
    ['/a\0.gns3', 400, 'a NUL character'],
    ['/no/such/lab.gns3', 404, 'there is no file "/no/such/lab.gns3"'],
    ['/etc/passwd/lab.gns3', 404, 'there is no file'],
  ] as const)('is not at %s', async ([path, status, message]) => {
    const files = new HostProjectFiles({ directory: '/none', isLocal: () => true })
    await expect(files.open(path)).rejects.toMatchObject({ status, message: expect.stringContaining(message) })
  })
})

it('a project of GNS3 on the disk of the host is opened with its nodes, links and files, and once', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const path = await campus(await freshDirectory())
  const before = await readFile(path, 'utf8')
  const load = () => service.call<LabProject>('POST', '/v2/projects/load', { path })
  expect(await load()).toMatchObject({ project_id, name: 'Campus', status: 'opened', zoom: 70 })
  const nodes = await service.call<LabNode[]>('GET', '/v2/projects/campus/nodes')
  expect(nodes.map(({ name, node_id, x, properties }) => [name, node_id, x, properties.startup_script])).toEqual([
    ['PC1', one, 5, 'ip 10.0.0.1/24\n'],
    ['PC2', two, 5, null],
  ])
  expect(await service.call('GET', '/v2/projects/campus/links')).toHaveLength(1)
  await service.call('PUT', '/v2/projects/campus', { name: 'load' })
  await service.call('POST', '/v2/projects/load/close')
  expect(await load()).toMatchObject({ project_id, name: 'load', status: 'opened' })
  // The word is a name for all other methods.
  expect(await service.call('GET', '/v2/projects/load')).toMatchObject({ project_id })
  expect(await readFile(path, 'utf8')).toBe(before)
  const wrong = await service.fetch('/v2/projects/load', { method: 'POST', body: JSON.stringify({ path: '/a' }) })
  expect(wrong.status).toBe(400)
})
