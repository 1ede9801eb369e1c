import { expect, onTestFinished } from 'vitest'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import { hangMs } from './limits.ts'

/** A service with labs, on Node or in workerd. */
export interface LabService {
  readonly url: string
  call<T>(method: string, path: string, body?: unknown): Promise<T>
}

const projects = '/v2/projects'

/** A lab with a pc for each of these computes, `PC1` and so on with the addresses 10.0.0.1 and so on; its path. */
export async function labOver(service: LabService, computes: readonly string[]): Promise<string> {
  const name = `lab ${crypto.randomUUID().slice(0, 8)}`
  const { project_id } = await service.call<{ project_id: string }>('POST', projects, { name, compute_id: computes[0] })
  const path = `${projects}/${project_id}`
  for (const [index, compute_id] of computes.entries()) {
    const properties = { startup_script: `ip 10.0.0.${index + 1}/24\n` }
    await service.call('POST', `${path}/nodes`, { name: `PC${index + 1}`, node_type: 'pc', compute_id, properties })
  }
  return path
}

export const nodesOf = (service: LabService, lab: string): Promise<LabNode[]> =>
  service.call<LabNode[]>('GET', `${lab}/nodes`)

/** Links the first ports of two nodes. */
export const linked = (service: LabService, lab: string, a: string, b: string): Promise<LabLink> =>
  service.call<LabLink>('POST', `${lab}/links`, { nodes: [`${a}:e0`, `${b}:e0`] })

/** Types on the console of a node until it shows what is expected. */
export async function types(
  service: LabService,
  node: string,
  { text, shows, headers = {} }: { text: string; shows: RegExp; headers?: Record<string, string> },
): Promise<void> {
  const { WebSocket } = await import('ws')
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}${node}/console/ws`, { headers })
  onTestFinished(() => socket.terminate())
  let seen = ''
  socket.on('message', (data) => {
    seen += data.toString()
  })
  await expect.poll(() => seen, { timeout: hangMs }).toContain('> ')
  socket.send(text)
  await expect.poll(() => seen, { timeout: hangMs }).toMatch(shows)
  socket.close()
}

export const answered = /bytes from 10\.0\.0\.2 icmp_seq=2/
