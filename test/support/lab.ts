import { randomUUID } from 'node:crypto'
import type { TestService } from './service.ts'
import { Terminal } from './terminal.ts'

/** Two pcs on one link, 10.0.0.1 and 10.0.0.2. */
export interface Lab {
  readonly project: string
  readonly pc1: string
  readonly pc2: string
}

/** Creates the lab by v2; paths of the project and its nodes. */
export async function createLab(service: Pick<TestService, 'call'>): Promise<Lab> {
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const [pc1, pc2] = await Promise.all([1, 2].map((number) => createPc(service, project, number)))
  const lab = { project, pc1: pc1 ?? '', pc2: pc2 ?? '' }
  const [a, b] = [await reserve(service, project), await reserve(service, project)]
  await attach(service, lab.pc1, a, b)
  await attach(service, lab.pc2, b, a)
  return lab
}

/** A pc named PC{number} with address 10.0.0.{number}; its path. */
export async function createPc(service: Pick<TestService, 'call'>, project: string, number: number): Promise<string> {
  const node_id = randomUUID()
  await service.call('POST', `${project}/pc/nodes`, {
    name: `PC${number}`,
    node_id,
    startup_script: `set pcname %h\nip 10.0.0.${number}/24\n`,
  })
  return `${project}/pc/nodes/${node_id}`
}

export async function attach(
  service: Pick<TestService, 'call'>,
  node: string,
  lport: number,
  rport: number,
  adapter = 0,
): Promise<void> {
  const nio = { type: 'nio_udp', lport, rhost: '127.0.0.1', rport }
  await service.call('POST', `${node}/adapters/${adapter}/ports/0/nio`, nio)
}

export async function reserve(service: Pick<TestService, 'call'>, project: string): Promise<number> {
  return (await service.call<{ udp_port: number }>('POST', `${project}/ports/udp`, {})).udp_port
}

export async function start(service: Pick<TestService, 'call'>, ...nodes: readonly string[]): Promise<void> {
  await Promise.all(nodes.map((node) => service.call('POST', `${node}/start`)))
}

/** A terminal on the console of a running node, at its prompt. */
export async function openConsole(service: Pick<TestService, 'call'>, node: string): Promise<Terminal> {
  const { console: port } = await service.call<{ console: number }>('GET', node)
  const terminal = await Terminal.connect(port)
  // The scroll-back has the prompt. What is typed before it is thrown away by VPCS.
  await terminal.expect(/PC\d+> /)
  return terminal
}

/**
 * Starts both pcs of a lab; the console of the first, once the second is at its prompt as well: a VPCS that does not have its address
 * yet is "not reachable" to a ping.
 */
export async function startPcs(service: Pick<TestService, 'call'>, { pc1, pc2 }: Lab): Promise<Terminal> {
  await start(service, pc1, pc2)
  const [console] = await Promise.all([openConsole(service, pc1), openConsole(service, pc2)])
  return console
}

export async function status(service: TestService, node: string): Promise<string> {
  return (await service.call<{ status: string }>('GET', node)).status
}
